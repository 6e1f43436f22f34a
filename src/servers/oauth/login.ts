// A person's login: the URL that a browser opens, the answer that comes back on the loopback, and the grant that it is
// exchanged for. It ends in one outcome, and leaves nothing behind but the grant.

import { randomBytes } from 'node:crypto';
import {
  auth,
  computeScopeUnion,
  IssuerMismatchError,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { urlOf } from '../../config/addresses.ts';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { type Callback, openCallback } from './callback.ts';
import { refusalOf } from './challenge.ts';
import { assertPkce, type Discovery, discover, httpUrlOf } from './discovery.ts';
import { type Fetch, guardedFetch } from './guarded-fetch.ts';
import { providerOf } from './provider.ts';
import { reasonOf } from './renewal.ts';
import type { Challenge, Place, Vault } from './vault.ts';

export type Login = {
  readonly url: string;
  /** Resolves when the grant is kept; rejects with the sentence why there is none. */
  readonly done: Promise<void>;
  cancel(why: string): void;
};
export type LoginOptions = {
  readonly server: RemoteServer;
  readonly place: Place;
  readonly vault: Vault;
  readonly timeoutMs: number;
};

/** Nothing when the server lets everybody in. */
export async function beginLogin({ server, place, vault, timeoutMs }: LoginOptions): Promise<Login | undefined> {
  const serverUrl = httpUrlOf(server.url);
  const fetchFn = guardedFetch(serverUrl);
  const challenge = vault.challenge(place) ?? (await probe(server, fetchFn));
  if (!challenge) return undefined;
  const discovery = await discover(server, challenge, fetchFn);
  assertPkce(server.name, discovery);
  const scope = computeScopeUnion(challenge.scope, server.oauth.scopes?.join(' '));
  const state = randomBytes(32).toString('base64url');
  const callback = await openCallback(server.name, state, portsOf(server, vault.newestClient(place)));
  let url: URL | undefined;
  const { redirectUrl } = callback;
  const onRedirect = (found: URL) => {
    url = found;
  };
  const provider = providerOf({ server, place, vault, discovery, scope, redirectUrl, state, onRedirect });
  try {
    await auth(provider, { serverUrl, fetchFn, forceReauthorization: true, ...(scope && { scope }) });
    if (!url || !/^https?:$/.test(url.protocol))
      throw new TroupeError('unsupported', `the authorization server ${discovery.issuer} has no page to log in at`);
  } catch (error) {
    await callback.finish({ isDone: false, message: 'The login could not begin.' });
    throw failureOf(server, error);
  }
  const exchange = async (answer: URLSearchParams): Promise<void> => {
    const { authorizationCode, iss } = codeOf(server, discovery, answer);
    await auth(provider, { serverUrl, fetchFn, authorizationCode, ...(iss !== undefined && { iss }) });
  };
  return { url: url.href, ...follow({ server, callback, timeoutMs }, exchange) };
}

type Following = { server: RemoteServer; callback: Callback; timeoutMs: number };

function follow({ server, callback, timeoutMs }: Following, exchange: (answer: URLSearchParams) => Promise<void>) {
  let cancel: (why: TroupeError) => void = () => {};
  const ended = new Promise<never>((_, reject) => {
    cancel = reject;
  });
  ended.catch(() => {}); // it may be cancelled when its outcome is known already
  const late = `nobody logged in to ${server.name} within ${Math.round(timeoutMs / 1000)} s; run troupe login again`;
  const timer = setTimeout(() => cancel(new TroupeError('timeout', late)), timeoutMs);
  const work = async (): Promise<void> => {
    try {
      await exchange(await Promise.race([callback.answer, ended]));
      await callback.finish({ isDone: true, message: 'You are logged in. You may close this page.' });
    } catch (error) {
      const failure = failureOf(server, error);
      await callback.finish({ isDone: false, message: `${failure.message}.` });
      throw failure;
    } finally {
      clearTimeout(timer);
    }
  };
  const done = work();
  done.catch(() => {}); // it is told to whoever waits, and nobody may
  return { done, cancel: (why: string) => cancel(new TroupeError('cancelled', why)) };
}

/** Asks for nothing that would begin a session: only whether we are let in. */
async function probe(server: RemoteServer, fetchFn: Fetch): Promise<Challenge | undefined> {
  const url = httpUrlOf(server.url);
  const accept = 'application/json, text/event-stream';
  const headers = { ...server.headers, accept, 'content-type': 'application/json' };
  const post = { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":0,"method":"ping"}' };
  try {
    const response = await fetchFn(url, server.transport === 'http' ? post : { headers });
    return refusalOf({ status: response.status, headers: Object.fromEntries(response.headers) })?.challenge;
  } catch (error) {
    if (server.transport !== 'http') return undefined; // an open stream does not end: it let us in
    throw new TroupeError('unavailable', `server ${server.name} cannot be asked for a login: ${sentence(error)}`);
  }
}

/** A registration is bound to its port, so the same is tried again. */
function portsOf({ oauth }: RemoteServer, client: object | undefined): number[] {
  if (oauth.redirectPort !== 0) return [oauth.redirectPort];
  const uris = client && 'redirect_uris' in client && Array.isArray(client.redirect_uris) ? client.redirect_uris : [];
  const port = Number(urlOf(String(uris[0]))?.port);
  return port > 0 ? [port, 0] : [0];
}

/** Who sent the answer is checked before any of its words is believed (RFC 9207). */
function codeOf({ name }: RemoteServer, { authorizationServerMetadata: metadata }: Discovery, answer: URLSearchParams) {
  const iss = answer.get('iss') ?? undefined;
  validateAuthorizationResponseIssuer({
    ...{ iss, expectedIssuer: metadata?.issuer },
    issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
  });
  const error = answer.get('error');
  if (error === 'access_denied') throw new TroupeError('unauthorized', `the login at ${name} was denied`);
  const authorizationCode = answer.get('code');
  if (error || !authorizationCode) {
    const said = /^[\w.:-]{1,60}$/.exec(error ?? '')?.[0] ?? 'no code';
    throw new TroupeError('unauthorized', `the login at ${name} failed: the authorization server said ${said}`);
  }
  return { authorizationCode, iss };
}

function failureOf(server: RemoteServer, error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  const isOther = error instanceof IssuerMismatchError;
  const why = isOther ? 'the answer came from another authorization server than was asked' : reasonOf(error);
  return new TroupeError('unauthorized', `the login at ${server.name} failed: ${why}`);
}
