// What one server is in the file, before defaults are filled in.

/** One server as the file has it: what hosts write, plus `x-troupe`. */
export type ServerDefinition = StdioDefinition | RemoteDefinition;

type Common = { readonly disabled?: boolean; readonly 'x-troupe'?: Record<string, unknown> };
export type StdioDefinition = Common & {
  readonly command: string;
  readonly args?: string[];
  readonly env?: Record<string, string>;
  readonly cwd?: string;
};
export type RemoteDefinition = Common & {
  readonly type?: string;
  readonly url: string;
  readonly headers?: Record<string, string>;
};
