export type ClientStage = { readonly address: string; close(): Promise<void> };

export function startClientStage(): Promise<ClientStage>;
