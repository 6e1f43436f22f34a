// The clients of remote servers take as much memory as the rest of the daemon. A daemon that runs processes only never loads
// them; a remote server is launched after they are loaded.

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
