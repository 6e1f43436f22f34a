// Our OAuth client on a store of its own, and one request to an MCP server as the remote transport makes it.

import { join } from 'node:path';
import type { OAuthSettings, RemoteServer } from '../../src/config/schema.ts';
import { createOAuth, type OAuth, type OAuthOptions } from '../../src/servers/oauth/oauth.ts';
import type { Authorizer } from '../../src/servers/remote/authorizer.ts';
import { openStore } from '../../src/store/store.ts';
import { scratch } from './scratch.ts';

export const remote = (url: string, oauth: Partial<OAuthSettings> = {}, name = 'guarded'): RemoteServer => ({
  ...{ transport: 'http', name, url, headers: { 'x-team': 'one' } },
  oauth: { grant: 'authorization_code', redirectPort: 0, ...oauth },
  settings: {} as RemoteServer['settings'],
});

export async function oauthClient(options: Partial<OAuthOptions> & { path?: string } = {}) {
  const dir = options.path === undefined ? await scratch() : undefined;
  const path = options.path ?? (dir?.path as string);
  const store = await openStore(join(path, 'database'));
  const oauth: OAuth = createOAuth({ store, directory: path, members: () => [], onLogin: () => {}, ...options });
  return {
    ...{ ...oauth, oauth, store, path },
    authorizer: (config: RemoteServer, onBehalfOf = '_') => oauth.authorizerOf({ config, onBehalfOf }),
    async [Symbol.asyncDispose]() {
      oauth.close();
      await store.close();
      await dir?.[Symbol.asyncDispose]();
    },
  };
}

/** One request; a challenge is answered at most once. Returns the status, or `login` when a person is needed. */
export async function request(url: string, authorizer: Authorizer): Promise<number | 'login'> {
  const send = async () =>
    fetch(url, {
      method: 'POST',
      headers: {
        ...(await authorizer.headers()),
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      },
      body: INITIALIZE,
    });
  const first = await send();
  if (first.status !== 401 && first.status !== 403) return first.status;
  const again = await authorizer.challenged({ status: first.status, headers: Object.fromEntries(first.headers) });
  return again ? (await send()).status : 'login';
}

const INITIALIZE = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
