// One HTTP request that was let in, and the plain ways to answer it. An answer is sent once; to one who has left, not at all.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { HttpSettings } from '../../config/schema.ts';
import { errorFrame } from '../../protocol/compose.ts';
import { type Delivery, errorObject, FAILURES, type FailureCode, failureOf } from '../../protocol/failures.ts';
import type { Mirror } from '../../servers/remote/mirrored.ts';
import type { HostSession, Scope, Sessions } from '../../sessions/host.ts';
import type { Patience } from './exchange.ts';
import type { Readers } from './readers.ts';

export type Visit = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: string;
  readonly scope: Scope;
  readonly cors: readonly string[];
};

/** What all visits share. */
export type House = {
  readonly sessions: Sessions;
  readonly settings: HttpSettings;
  readonly logger: Logger;
  /** What no host is told. */
  readonly onFault: (error: unknown) => void;
  readonly timing: Timing;
  readonly readers: Readers;
  /** The exchanges that are not answered yet and may still be plain JSON. */
  readonly patience: Patience;
  /** How many answers hosts wait for. */
  readonly owed: { count: number };
  readonly headerDeclarations?: HeaderDeclarations;
};

export type Timing = {
  /** How long a request waits for its answer before it becomes a stream. */
  readonly patienceMs: number;
  /** How long a stream stays on one connection, for hosts that know how to come back. */
  readonly rotateMs: number;
  /** How long a request's head, and then its body, may take to arrive. */
  readonly headMs: number;
  readonly bodyMs: number;
  /** How often the two are looked after. */
  readonly checkMs: number;
  /** How long requests in flight are waited for when the door closes. */
  readonly drainMs: number;
};

/** What a tool's `x-mcp-header` say. */
export type HeaderDeclarations = (session: HostSession, tool: string) => readonly Mirror[];

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

/** Whether nobody is there to answer. A response that waits behind another on its connection is not told, so both are asked. */
export const isGone = ({ req, res }: Visit): boolean => res.destroyed || req.socket.destroyed;

/** Called once, by whichever of the two goes first. */
export function onGone({ req: { socket }, res }: Visit, leave: () => void): void {
  let hasLeft = false;
  const once = (): void => {
    socket.off('close', once);
    res.off('close', once);
    if (hasLeft) return; // an event that is being told is told to the end
    hasLeft = true;
    leave();
  };
  socket.on('close', once);
  res.on('close', once);
}

export function sendJson({ res, cors }: Visit, status: number, body: Buffer, headers?: readonly string[]): void {
  if (res.destroyed) return;
  const head = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];
  if (headers) head.push(...headers);
  if (cors.length > 0) head.push(...cors);
  res.writeHead(status, head);
  if (body.length <= SMALL_BYTES) res.end(body.toString('latin1'), 'latin1');
  else res.end(body);
}

export function sendEmpty({ res, cors }: Visit, status: number, headers?: readonly string[]): void {
  if (res.destroyed) return;
  const head = status === 204 ? [] : ['Content-Length', '0'];
  res.writeHead(status, headers ? [...head, ...headers, ...cors] : [...head, ...cors]);
  res.end();
}

export function refuse(visit: Visit, status: number, { rpc, message, id = 'null', headers }: Reason): void {
  sendJson(visit, status, errorFrame(id, Buffer.from(JSON.stringify({ code: rpc, message }))), headers);
}

export function invalid(visit: Visit, status: number, message: string, id?: string): void {
  refuse(visit, status, { rpc: INVALID_REQUEST, message, id });
}

const STATUS: { readonly [code in FailureCode]?: number } = {
  malformed: 400,
  invalid: 400,
  unauthorized: 403,
  unknownServer: 404,
  busy: 503,
  unavailable: 503,
};
const RETRY_SOON = ['Retry-After', '5'];

/** What was thrown on the way, to whoever has not heard anything yet. Others see the connection break, and may come back. */
export function refuseThrown(
  visit: Visit,
  { onFault }: House,
  error: unknown,
  { id = 'null', delivery = 'not sent' as Delivery } = {},
): void {
  const failure = failureOf(error, onFault, delivery);
  if (visit.res.headersSent) return void visit.res.destroy();
  const status = STATUS[failure.code] ?? 500;
  const mayRetry = status === 503 && delivery === 'not sent';
  sendJson(visit, status, errorFrame(id, errorObject(failure)), mayRetry ? RETRY_SOON : undefined);
}

export function refuseBusy(visit: Visit, message: string, id?: string): void {
  refuse(visit, 429, { rpc: FAILURES.busy.rpc, message, id, headers: RETRY_SOON });
}
