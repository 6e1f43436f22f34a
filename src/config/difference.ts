// What changed between two configurations, in the words of the fleet: which servers come, go,
// need a new process, or merely take new settings while they run.

import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerConfig } from './schema.ts';

export type Difference = {
  readonly added: ServerConfig[];
  readonly removed: string[];
  readonly relaunched: ServerConfig[];
  readonly retuned: ServerConfig[];
};

export function difference(before: Config, after: Config): Difference {
  const old = new Map(before.servers.map((server) => [server.name, server]));
  const names = new Set(after.servers.map((server) => server.name));
  const result: Difference = { added: [], removed: [], relaunched: [], retuned: [] };
  for (const server of after.servers) {
    const previous = old.get(server.name);
    if (!previous) result.added.push(server);
    else if (!isDeepStrictEqual(launchOf(previous), launchOf(server))) result.relaunched.push(server);
    else if (!isDeepStrictEqual(previous.settings, server.settings)) result.retuned.push(server);
  }
  result.removed.push(...[...old.keys()].filter((name) => !names.has(name)));
  return result;
}

/** Everything that is fixed when the process is launched or the session opened; the other settings take effect at once. */
function launchOf({ settings, ...definition }: ServerConfig) {
  const { env, maxFrameBytes, enabled, restart, openMs, drainMs, stdinMs, termMs } = settings;
  return [definition, env, maxFrameBytes, enabled, restart, openMs, drainMs, stdinMs, termMs];
}
