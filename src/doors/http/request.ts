// One HTTP request that was let in: the endpoint and the session that it names, and the plain ways to answer it. An answer is
// sent once, and not at all when the client has left.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorFrame } from '../../protocol/compose.ts';
import { ERAS, eraOf } from '../../protocol/eras.ts';
import { type Delivery, errorObject, FAILURES, type FailureCode, failureOf } from '../../protocol/failures.ts';
import type { HostSession, Scope } from '../../sessions/host.ts';
import type { HttpContext } from './context.ts';

export type HttpRequest = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: string;
  readonly scope: Scope;
  readonly cors: readonly string[];
};

// ── Answers ──────────────────────────────────────────────────────────────────

export const INVALID_REQUEST = -32600;
/** The draft's code for headers that say something else than the body. */
export const HEADER_MISMATCH = -32001;

export type Reason = {
  readonly rpc: number;
  readonly message: string;
  /** The request's id as it came; `null` where there is none. */
  readonly id?: string | undefined;
  readonly headers?: readonly string[];
};

/** Small bodies go out in one write with the head, which only strings can. */
const SMALL_BYTES = 16_384;

/** Whether the client has left. A response that waits behind another on its connection is not told, so both are asked. */
export const isGone = ({ req, res }: HttpRequest): boolean => res.destroyed || req.socket.destroyed;

/** Calls back once, when the response or its connection is closed. */
export function onGone({ req: { socket }, res }: HttpRequest, leave: () => void): void {
  let hasLeft = false;
  const once = (): void => {
    socket.off('close', once);
    res.off('close', once);
    if (hasLeft) return; // both were closed by one event
    hasLeft = true;
    leave();
  };
  socket.on('close', once);
  res.on('close', once);
}

export function sendJson({ res, cors }: HttpRequest, status: number, body: Buffer, headers?: readonly string[]): void {
  if (res.destroyed) return;
  const head = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];
  if (headers) head.push(...headers);
  if (cors.length > 0) head.push(...cors);
  res.writeHead(status, head);
  if (body.length <= SMALL_BYTES) res.end(body.toString('latin1'), 'latin1');
  else res.end(body);
}

export function sendEmpty({ res, cors }: HttpRequest, status: number, headers?: readonly string[]): void {
  if (res.destroyed) return;
  const head = status === 204 ? [] : ['Content-Length', '0'];
  res.writeHead(status, headers ? [...head, ...headers, ...cors] : [...head, ...cors]);
  res.end();
}

export function refuse(http: HttpRequest, status: number, { rpc, message, id = 'null', headers }: Reason): void {
  sendJson(http, status, errorFrame(id, Buffer.from(JSON.stringify({ code: rpc, message }))), headers);
}

export function invalid(http: HttpRequest, status: number, message: string, id?: string): void {
  refuse(http, status, { rpc: INVALID_REQUEST, message, id });
}

const STATUS: { readonly [code in FailureCode]?: number } = {
  malformed: 400,
  invalid: 400,
  unauthorized: 403,
  unknownServer: 404,
  busy: 429,
  unavailable: 503,
};
const RETRY_SOON = ['Retry-After', '5'];

/** Answers with what was thrown. If the response has begun, the connection is broken instead; the host may come back. */
export function refuseThrown(
  http: HttpRequest,
  { onFault }: HttpContext,
  error: unknown,
  { id = 'null', delivery = 'not sent' as Delivery } = {},
): void {
  const failure = failureOf(error, onFault, delivery);
  if (http.res.headersSent) return void http.res.destroy();
  const status = STATUS[failure.code] ?? 500;
  const mayRetry = (status === 503 || status === 429) && delivery === 'not sent';
  sendJson(http, status, errorFrame(id, errorObject(failure)), mayRetry ? RETRY_SOON : undefined);
}

export function refuseBusy(http: HttpRequest, message: string, id?: string): void {
  refuse(http, 429, { rpc: FAILURES.busy.rpc, message, id, headers: RETRY_SOON });
}

// ── What the request names ───────────────────────────────────────────────────

export type Endpoint = 'mcp' | 'sse' | 'messages' | 'ws';
export type Route = { readonly endpoint: Endpoint; readonly scope: Scope };

export const ALLOWED = {
  mcp: 'GET, POST, DELETE, OPTIONS',
  sse: 'GET, OPTIONS',
  messages: 'POST, OPTIONS',
  ws: 'GET, OPTIONS',
} as const satisfies Record<Endpoint, string>;

const SCOPED: Record<string, Endpoint | undefined> = { mcp: 'mcp', sse: 'sse', ws: 'ws' };
const LONGEST_PATH = 256;

const MAX_KNOWN = 256;
const known = new Map<string, Route>();

/** What a path names, if anything. The same few paths come again and again, so they are remembered. */
export function routeOf(url: string): Route | undefined {
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const found = known.get(path) ?? readPath(path);
  if (found && known.size < MAX_KNOWN) known.set(path, found);
  return found;
}

function readPath(path: string): Route | undefined {
  if (path.length > LONGEST_PATH) return undefined;
  const [, first = '', second = ''] = /^\/([^/]+)(?:\/([^/]*))?\/?$/.exec(path) ?? [];
  if (first === 'messages' && second === '') return { endpoint: 'messages', scope: '' };
  // `/<server>/mcp` is `/mcp/<server>`, for clients that tell the transport by how an address ends.
  const [word, name] = second === 'mcp' && !Object.hasOwn(SCOPED, first) ? [second, first] : [first, second];
  const endpoint = Object.hasOwn(SCOPED, word) ? SCOPED[word] : undefined;
  const scope = decoded(name);
  return endpoint && scope !== undefined ? { endpoint, scope } : undefined;
}

/** `@` may come as %40. */
function decoded(part: string): string | undefined {
  if (!part.includes('%')) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined; // no text in any encoding that we know
  }
}

/**
 * The session of that id, that principal and that endpoint. Undefined when there is none, and then the request is answered:
 * alike whether the session is another principal's or nobody's.
 */
export function sessionOf({ sessions }: HttpContext, http: HttpRequest, id?: string): HostSession | undefined {
  const named = http.req.headers['mcp-session-id'];
  if (typeof named !== 'string') {
    invalid(http, 400, 'the Mcp-Session-Id header is missing; begin a session with initialize', id);
    return undefined;
  }
  const session = sessions.find(named, http.principal);
  if (session && session.scope === http.scope && session.door === 'http') return session;
  invalid(http, 404, 'there is no such session here, or it has ended; begin a new one with initialize', id);
  return undefined;
}

/** The header is optional, but one that is sent must name a version we speak. */
export function speaksOurVersion(http: HttpRequest): boolean {
  const version = http.req.headers['mcp-protocol-version'];
  if (version === undefined || (typeof version === 'string' && eraOf(version))) return true;
  invalid(http, 400, `the MCP-Protocol-Version is not supported; supported are ${ERAS.join(', ')}`);
  return false;
}
