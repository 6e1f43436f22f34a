export type Tool = 'node' | 'conformance' | 'conformance-next' | 'inspector' | 'supergateway' | 'mcp-proxy';

/** The file of the tool's command: a binary for `node`, a script to run with it for the others. */
export function toolPath(name: Tool): Promise<string>;

/** For vitest's `globalSetup`: no test should have to wait. What cannot be had fails only the tests that want it. */
export function setup(): Promise<void>;
