export type Tool = 'node' | 'conformance' | 'conformance-next' | 'inspector' | 'supergateway' | 'mcp-proxy';

/** The file of the tool's command: a binary for `node`, a script to run with it for the others. */
export function toolPath(name: Tool): Promise<string>;

export function toolVersion(name: Tool): string;

/** The folder of exactly that version of a package of the registry. */
export function packageHome(id: string, version: string): Promise<string>;

/** The file of one of a package's commands; a package with one command needs no name for it. */
export function commandOf(home: string, command?: string): Promise<string>;

/** For vitest's `globalSetup`: no test should have to wait. What cannot be had fails only the tests that want it. */
export function setup(): Promise<void>;
