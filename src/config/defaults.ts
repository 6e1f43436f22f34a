// The configuration used when there is no file: three reference servers, so that the first start shows something.
// The files below the state directory are only named here; `up` creates them.

import { join } from 'node:path';
import type { Paths } from './paths.ts';
import { type Config, type StdioServer, settingsSchema, troupeSchema } from './schema.ts';

export function defaultConfig(paths: Paths): Omit<Config, 'servers'> & { readonly servers: StdioServer[] } {
  const { servers: _, ...rest } = troupeSchema.parse({});
  return {
    ...rest,
    servers: [
      reference('everything', ['stdio']),
      reference('filesystem', [join(paths.state, 'files')]),
      reference('memory', [], { MEMORY_FILE_PATH: join(paths.state, 'memory.jsonl') }),
    ],
    plugins: [],
    path: undefined,
  };
}

function reference(name: string, args: string[], env: Record<string, string> = {}): StdioServer {
  return {
    transport: 'stdio',
    name,
    command: 'npx',
    args: ['-y', `@modelcontextprotocol/server-${name}`, ...args],
    env,
    settings: settingsSchema.parse({ trust: true }), // chosen by troupe itself
  };
}
