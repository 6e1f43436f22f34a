// Which requests are let in: by the `Host` that they ask for, the page that they come from, and the token that they show or the
// user who sends them. Asked of every request and of every upgrade, before anything else is looked at.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { inUrl, isLoopback } from '../../config/addresses.ts';
import type { HttpSettings } from '../../config/schema.ts';
import type { Standing, StandingOf } from './peers.ts';

export type Admission = {
  readonly is: 'admitted';
  readonly principal: string;
  /** The headers that a page of a configured origin must get; none for everybody else. */
  readonly cors: readonly string[];
};
/** A browser asks whether its page may send a token, before it sends one. */
export type Question = { readonly is: 'preflight'; readonly cors: readonly string[] };
export type Refusal = {
  readonly is: 'refused';
  readonly status: 400 | 401 | 403;
  readonly message: string;
  readonly headers: readonly string[];
};
export type Verdict = Admission | Question | Refusal;
/** A promise only where it must first be found out whose a new connection is. */
export type Gate = (req: IncomingMessage) => Verdict | Promise<Verdict>;

export type GateOptions = {
  readonly host: string;
  readonly port: number;
  readonly settings: HttpSettings;
  /** Whose a connection from this machine is; nothing where the system does not tell. */
  readonly standingOf: StandingOf | undefined;
};

export const NO_HEADERS: readonly string[] = [];
/** The principal of a request that shows no token and is the owner's all the same. */
const OWNER = '_';
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate';
const ELSEWHERE = new Set(['cross-site', 'same-site']);
const LONGEST_SHOWN = 64;

export function createGate({ host, port, settings, standingOf }: GateOptions): Gate {
  const isOurs = hostCheck(host, port, settings.hosts);
  const origins = new Set(settings.origins.map(plainOrigin));
  const own = new Set(ownNames(host, port).map((name) => `http://${name}`));
  const principalOf = tokenCheck(settings.tokens);
  const whose = needsToken(host, settings, standingOf) ? undefined : standingOf;

  return (req) => {
    const { host: asked, origin, authorization } = req.headers;
    if (hasTwoHosts(req)) return TWO_HOSTS;
    if (!isOurs(asked, req)) return forbidden(`"${short(asked)}" is no name of this daemon`, 'http.hosts');
    const isConfigured = origin !== undefined && origins.has(origin);
    if (origin !== undefined && !isConfigured && !own.has(origin))
      return forbidden(`pages of "${short(origin)}" may not come in`, 'http.origins');
    // A page's plain GET, as of an image, names no origin; the browser still says that a page elsewhere made it.
    if (origin === undefined && ELSEWHERE.has(String(req.headers['sec-fetch-site'])))
      return forbidden('pages of other sites may not come in', 'http.origins');
    const cors = isConfigured ? corsOf(origin) : NO_HEADERS;
    if (authorization !== undefined) {
      const principal = principalOf(authorization);
      return principal === undefined ? unauthorized(WRONG, cors, INVALID) : { is: 'admitted', principal, cors };
    }
    if (isConfigured && req.method === 'OPTIONS') return { is: 'preflight', cors };
    if (!whose) return unauthorized(NEEDED, cors);
    if (isForwarded(req)) return unauthorized(FORWARDED, cors);
    const standing = whose(req.socket);
    return standing instanceof Promise ? standing.then((found) => verdictOn(found, cors)) : verdictOn(standing, cors);
  };
}

/** Whether a request must show a token whoever sends it. */
export const needsToken = (host: string, { requireToken }: HttpSettings, standingOf: StandingOf | undefined): boolean =>
  requireToken || !isLoopback(host) || standingOf === undefined;

const OWNERS: Admission = { is: 'admitted', principal: OWNER, cors: NO_HEADERS };

function verdictOn(standing: Standing, cors: readonly string[]): Verdict {
  if (standing === 'owner') return cors === NO_HEADERS ? OWNERS : { is: 'admitted', principal: OWNER, cors };
  return unauthorized(standing === 'server' ? OF_A_SERVER : NOT_THE_OWNERS, cors);
}

/** A proxy that runs as the owner brings requests of others, and most say so. */
const isForwarded = ({ headers }: IncomingMessage): boolean =>
  headers['x-forwarded-for'] !== undefined ||
  headers.forwarded !== undefined ||
  headers['x-real-ip'] !== undefined ||
  headers.via !== undefined;

export const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::';

/** Node keeps the first `Host`; a proxy before us may have looked at the second. */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count > 1;
}

const TWO_HOSTS: Refusal = {
  is: 'refused',
  status: 400,
  headers: NO_HEADERS,
  message: 'the request has two Host headers; send one',
};

/** A page that was given another address for its own name (DNS rebinding) still says its own name in `Host`. */
function hostCheck(host: string, port: number, further: readonly string[]) {
  const names = new Set([...ownNames(host, port), ...further.map((name) => name.toLowerCase())]);
  const here = (req: IncomingMessage) => `${inUrl(plainAddress(req.socket.localAddress ?? ''))}:${port}`;
  return (asked: string | undefined, req: IncomingMessage): boolean => {
    if (asked === undefined) return false;
    if (names.has(asked)) return true;
    const name = asked.toLowerCase();
    return names.has(name) || names.has(name.replace(/:\d+$/, '')) || (isWildcard(host) && name === here(req));
  };
}

function ownNames(host: string, port: number): string[] {
  const hosts = [inUrl(host.toLowerCase()), 'localhost', '127.0.0.1', '[::1]'];
  return [...hosts.map((name) => `${name}:${port}`), ...(port === 80 ? hosts : [])];
}

/** An IPv4 connection to an IPv6 socket has its address wrapped. */
const plainAddress = (address: string): string => address.replace(/^::ffff:/, '');

const plainOrigin = (origin: string): string => origin.toLowerCase().replace(/\/$/, '');

/** Digests are compared, so that neither the time nor the length says how much of a guess was right. */
function tokenCheck(tokens: Record<string, string>) {
  const known = Object.entries(tokens).map(([principal, token]) => ({ principal, digest: digestOf(token) }));
  return (authorization: string): string | undefined => {
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token === undefined) return undefined;
    const digest = digestOf(token);
    let found: string | undefined;
    for (const { principal, digest: wanted } of known) if (timingSafeEqual(digest, wanted)) found = principal;
    return found;
  };
}

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

const corsOf = (origin: string): string[] => [
  'Access-Control-Allow-Origin',
  origin,
  'Access-Control-Expose-Headers',
  EXPOSED,
  'Vary',
  'Origin',
];

const forbidden = (what: string, setting: string): Refusal => ({
  is: 'refused',
  status: 403,
  headers: NO_HEADERS,
  message: `${what}; add it to x-troupe.${setting} if it should be let in`,
});

const SHOW = 'send Authorization: Bearer with the token that `troupe env` shows, or with one of x-troupe.http.tokens';
const WRONG = 'the bearer token is no token of this daemon; check the Authorization header against `troupe env`';
const NEEDED = `a bearer token is needed here; ${SHOW}`;
const FORWARDED = `the request was forwarded, so its sender needs a bearer token; ${SHOW}`;
const OF_A_SERVER =
  'servers that troupe runs come in with a bearer token only; give it one of x-troupe.http.tokens in its configuration';
const NOT_THE_OWNERS = `only programs of the user who runs troupe come in without a bearer token; ${SHOW}`;

const REALM = 'Bearer realm="troupe"';
const INVALID = `${REALM}, error="invalid_token"`;

const unauthorized = (message: string, cors: readonly string[], challenge = REALM): Refusal => ({
  is: 'refused',
  status: 401,
  message,
  headers: ['WWW-Authenticate', challenge, ...cors],
});

const short = (text: string | undefined): string => (text ?? '').slice(0, LONGEST_SHOWN);
