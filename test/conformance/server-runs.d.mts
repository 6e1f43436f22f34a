import type { Result } from './suite.mjs';

export type Stage = { urlOf(server: string): string; close(): Promise<void> };
export type ServerRun = {
  readonly title: string;
  readonly tool: string;
  readonly words: readonly string[];
  readonly scenarios: number;
  readonly checks: number;
  readonly server: string;
};

export const serverRuns: readonly ServerRun[];
export function startStage(): Promise<Stage>;
export function runServer(stage: Stage, run: ServerRun): Promise<Result & { readonly isGood: boolean }>;
