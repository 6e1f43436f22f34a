// The configuration used when there is no file: three reference servers, so that the first start shows something.
// It only names the files below the state directory; whoever starts the daemon creates them.

import { join } from 'node:path';
import type { Paths } from './paths.ts';
import { type Config, type StdioServer, settingsSchema, troupeSchema } from './schema.ts';

export function defaultConfig(paths: Paths): Omit<Config, 'servers'> & { readonly servers: StdioServer[] } {
  const { requests, nats, http, profiles, asks, tasks, roots, logLevel } = troupeSchema.parse({});
  return {
    servers: [
      reference('everything', ['stdio']),
      reference('filesystem', [join(paths.state, 'files')]),
      reference('memory', [], { MEMORY_FILE_PATH: join(paths.state, 'memory.jsonl') }),
    ],
    plugins: [],
    requests,
    nats,
    http,
    profiles,
    asks,
    tasks,
    roots,
    logLevel,
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
    settings: settingsSchema.parse({ trust: true }), // our own choice, so nobody need be asked about them
  };
}
