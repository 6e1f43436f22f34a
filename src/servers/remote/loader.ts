// The clients of remote servers weigh as much as the rest of the daemon. One that runs processes only never loads them; who
// configures a remote server waits for them before it is launched.

import type { ServerConfig } from '../../config/schema.ts';
import type { remoteLink as RemoteLink } from './link.ts';

let loaded: typeof RemoteLink | undefined;

export async function loadRemote(): Promise<void> {
  loaded ??= (await import('./link.ts')).remoteLink;
}

export const hasRemote = (servers: readonly ServerConfig[]): boolean =>
  servers.some(({ transport }) => transport !== 'stdio');

export const remoteLink: typeof RemoteLink = (...given) => {
  if (!loaded) throw new Error('a remote server was launched before its client was loaded');
  return loaded(...given);
};
