// The only way out for discovery, registration and tokens. An MCP server tells us where its authorization server is, so
// that address is a stranger's word: it must not lead us to machines that only we can reach (SSRF).
//
// Names are judged by what they resolve to at the moment of connecting, so that a second answer of the DNS changes
// nothing. No redirect is followed here: the SDK follows those within an origin, and each hop comes through here again.

import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, fetch as send } from 'undici';
import { isLoopback, type Reach, reachOf } from '../../config/addresses.ts';
import { sentence } from '../../protocol/failures.ts';

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
export type Lookup = typeof systemLookup;

type Options = { readonly lookup?: Lookup; readonly timeoutMs?: number; readonly maxBytes?: number };

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 1_048_576;

/** For whatever concerns the MCP server at that address; where it stands itself decides where we may go for it. */
export function guardedFetch(serverUrl: string, options: Options = {}): Fetch {
  const { lookup = systemLookup, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES } = options;
  let home: Promise<Reach> | undefined;

  return async (target, init = {}) => {
    const url = new URL(target);
    home ??= homeOf(new URL(serverUrl).hostname, lookup);
    const reaches = allowedFrom(await home, url);
    assertAllowed(url, reaches);
    // No connection outlives its request: there are few, and each must have been judged itself.
    const dispatcher = new Agent({ pipelining: 0, connect: { lookup: checked(lookup, reaches), timeout: timeoutMs } });
    try {
      const { signal } = init;
      const limit = AbortSignal.timeout(timeoutMs);
      const response = await send(url, {
        dispatcher,
        redirect: 'manual',
        method: init.method ?? 'GET',
        headers: Object.fromEntries(new Headers(init.headers)),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
        ...(init.body != null && { body: String(init.body) }),
      });
      const body = await capped(response.body, maxBytes);
      const isEmpty = [101, 204, 205, 304].includes(response.status);
      // The SDK tells answers by the class of the runtime's own fetch.
      return new Response(isEmpty ? null : body, { status: response.status, headers: [...response.headers] });
    } catch (error) {
      throw trouble(url, error);
    } finally {
      void dispatcher.destroy();
    }
  };
}

/** Where the MCP server is. One public address among the others makes it public. */
async function homeOf(hostname: string, lookup: Lookup): Promise<Reach> {
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal)) return reachOf(literal);
  const found = await new Promise<string[]>((resolve) =>
    lookup(hostname, { all: true }, (error, all) => resolve(error ? [] : all.map(({ address }) => address))),
  );
  const reaches = found.map(reachOf);
  return reaches.includes('public') ? 'public' : (reaches[0] ?? 'public');
}

function allowedFrom(home: Reach, { protocol }: URL): ReadonlySet<Reach> {
  const near: Reach[] =
    home === 'public' ? [] : ['private', 'reserved', 'loopback', ...(home === 'link-local' ? [home] : [])];
  const all = new Set<Reach>(['public', ...near]);
  return protocol === 'http:' ? new Set([...all].filter((reach) => reach === 'loopback')) : all;
}

/** A literal address is never looked up, so it is judged here. */
function assertAllowed(url: URL, reaches: ReadonlySet<Reach>): void {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    throw refusal(url, 'only https is spoken beyond this machine');
  const literal = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) && !reaches.has(reachOf(literal))) throw refusal(url, `${literal} is ${reachOf(literal)}`);
}

const checked =
  (lookup: Lookup, reaches: ReadonlySet<Reach>): LookupFunction =>
  (hostname, options, done) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const bad = error ? undefined : found.find(({ address }) => !reaches.has(reachOf(address)));
      if (bad) return done(new Error(`${hostname} is ${bad.address}, which is ${reachOf(bad.address)}`), []);
      const [first] = found ?? [];
      if (error || !first) return done(error ?? new Error(`${hostname} has no address`), []);
      return options.all ? done(null, found) : done(null, first.address, first.family);
    });

async function capped(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

// A TypeError, because the SDK takes every other error of a fetch for "not there" and tries the next address.
const refusal = (url: URL, why: string): TypeError => new TypeError(`${withoutQuery(url)} is not asked: ${why}`);

/** A query may hold a secret. */
const withoutQuery = (url: URL): string => `${url.origin}${url.pathname}`.slice(0, 200);

function trouble(url: URL, error: unknown): TypeError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new TypeError(`${withoutQuery(url)} cannot be asked: ${sentence(cause)}`);
}
