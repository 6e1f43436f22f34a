// A person's login: the URL that a browser opens, the answer that comes back on the loopback, and the grant that it is
// exchanged for. A login ends in one outcome, and leaves no trace but the grant.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  auth,
  computeScopeUnion,
  IssuerMismatchError,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { urlOf } from '../../config/addresses.ts';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { refusalOf } from './challenge.ts';
import { assertPkce, type Discovery, discover, httpUrlOf } from './discovery.ts';
import { type Fetch, guardedFetch } from './guarded-fetch.ts';
import { providerOf } from './provider.ts';
import { reasonOf } from './renewal.ts';
import type { Account, Challenge, Vault } from './vault.ts';

export type Login = {
  readonly url: string;
  /** Resolves when the grant is saved; rejects with the sentence why there is none. */
  readonly done: Promise<void>;
  cancel(why: string): void;
};
export type LoginOptions = {
  readonly server: RemoteServer;
  readonly account: Account;
  readonly vault: Vault;
  readonly timeoutMs: number;
};

/** Undefined when the server needs no login. */
export async function beginLogin({ server, account, vault, timeoutMs }: LoginOptions): Promise<Login | undefined> {
  const serverUrl = httpUrlOf(server.url);
  const fetchFn = guardedFetch(serverUrl);
  const challenge = vault.challenge(account) ?? (await probe(server, fetchFn));
  if (!challenge) return undefined;
  const discovery = await discover(server, challenge, fetchFn);
  assertPkce(server.name, discovery);
  const scope = computeScopeUnion(challenge.scope, server.oauth.scopes?.join(' '));
  const state = randomBytes(32).toString('base64url');
  const callback = await openCallback(server.name, state, portsOf(server, vault.newestClient(account)));
  let url: URL | undefined;
  const { redirectUrl } = callback;
  const onRedirect = (found: URL) => {
    url = found;
  };
  const provider = providerOf({ server, account, vault, discovery, scope, redirectUrl, state, onRedirect });
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
  ended.catch(() => {}); // it may be cancelled after its end
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
  done.catch(() => {}); // the outcome may have no listener
  return { done, cancel: (why: string) => cancel(new TroupeError('cancelled', why)) };
}

/** Finds out whether the server lets us in, by a request that begins no session. */
async function probe(server: RemoteServer, fetchFn: Fetch): Promise<Challenge | undefined> {
  const url = httpUrlOf(server.url);
  const accept = 'application/json, text/event-stream';
  const headers = { ...server.headers, accept, 'content-type': 'application/json' };
  const post = { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":0,"method":"ping"}' };
  try {
    const response = await fetchFn(url, server.transport === 'http' ? post : { headers });
    return refusalOf({ status: response.status, headers: Object.fromEntries(response.headers) })?.challenge;
  } catch (error) {
    if (server.transport !== 'http') return undefined; // the time-out of an open stream: the server let us in
    throw new TroupeError('unavailable', `server ${server.name} cannot be asked for a login: ${sentence(error)}`);
  }
}

/** A registration is bound to the port of its redirect address, so that port is tried first. */
function portsOf({ oauth }: RemoteServer, client: object | undefined): number[] {
  if (oauth.redirectPort !== 0) return [oauth.redirectPort];
  const uris = client && 'redirect_uris' in client && Array.isArray(client.redirect_uris) ? client.redirect_uris : [];
  const port = Number(urlOf(String(uris[0]))?.port);
  return port > 0 ? [port, 0] : [0];
}

/** The issuer of the answer is checked before anything in it is believed (RFC 9207). */
function codeOf({ name }: RemoteServer, { authorizationServerMetadata: metadata }: Discovery, answer: URLSearchParams) {
  const iss = answer.get('iss') ?? undefined;
  validateAuthorizationResponseIssuer({
    iss,
    expectedIssuer: metadata?.issuer,
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

// ── The callback ─────────────────────────────────────────────────────────────
// The browser comes back to a listener on the loopback, for one answer. The first request uses up the `state`, right or wrong;
// later ones are turned away.

type Callback = {
  readonly redirectUrl: string;
  /** The parameters of the answer. Rejects when its `state` is not ours. */
  readonly answer: Promise<URLSearchParams>;
  /** Shows the outcome of the login in the browser, and closes the listener. */
  finish(outcome: { readonly isDone: boolean; readonly message: string }): Promise<void>;
};

const PATH = '/callback';

/** `ports` are tried in turn; 0 is any. */
async function openCallback(server: string, state: string, ports: readonly number[]): Promise<Callback> {
  let settle: (found: URLSearchParams | TroupeError) => void = () => {};
  const answer = new Promise<URLSearchParams>((resolve, reject) => {
    settle = (found) => (found instanceof TroupeError ? reject(found) : resolve(found));
  });
  answer.catch(() => {}); // the answer may have no listener any more
  let browser: ServerResponse | undefined;
  let isUsed = false;

  const http = createServer({ requestTimeout: 10_000, maxHeaderSize: 16_384 }, take);
  http.maxConnections = 8;
  http.on('error', () => {}); // whoever cannot be accepted comes again; that a port is taken is heard below
  const port = await listen(http, server, ports);

  function take(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', `http://127.0.0.1:${port}`);
    const isOurs = request.headers.host === url.host && request.method === 'GET' && url.pathname === PATH;
    if (!isOurs) return show(response, 404, server, 'There is nothing here.');
    if (isUsed) return show(response, 410, server, 'This login is over. Start another one.');
    isUsed = true;
    browser = response;
    const wrong = `the answer to the login at ${server} had a wrong state; nothing was kept, run troupe login again`;
    const isRight = isSame(url.searchParams.get('state') ?? '', state);
    settle(isRight ? url.searchParams : new TroupeError('unauthorized', wrong));
  }

  return {
    redirectUrl: `http://127.0.0.1:${port}${PATH}`,
    answer,
    async finish({ isDone, message }) {
      isUsed = true;
      if (browser) show(browser, isDone ? 200 : 400, server, message);
      http.close();
      http.closeIdleConnections();
      setTimeout(() => http.closeAllConnections(), 1_000).unref(); // until then the page is being sent
    },
  };
}

async function listen(
  http: ReturnType<typeof createServer>,
  server: string,
  ports: readonly number[],
): Promise<number> {
  for (const port of ports) {
    const isListening = await new Promise<boolean>((resolve) => {
      http.once('error', () => resolve(false));
      http.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isListening) return (http.address() as AddressInfo).port;
  }
  const wanted = ports.join(', ');
  throw new TroupeError('unavailable', `port ${wanted} for the login at ${server} is taken; set oauth.redirectPort`);
}

function isSame(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The page loads nothing from other hosts, because its address holds a code. */
function show(response: ServerResponse, status: number, server: string, message: string): void {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>troupe</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 32em">
<h1>${escaped(server)}</h1><p>${escaped(message)}</p></body></html>\n`;
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  });
  response.end(page);
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (each) => ENTITIES[each] ?? '');
