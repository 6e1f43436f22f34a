// POST /mcp: one message of a host, or a batch of them. `initialize` opens a session; everything else belongs to one. Requests
// are answered here, on this response; notifications and responses are taken with 202. DELETE /mcp: the end of the session.

import type { IncomingMessage } from 'node:http';
import { resultFrame } from '../../protocol/compose.ts';
import { codecOf } from '../../protocol/eras.ts';
import { FAILURES } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import type { HostSession } from '../../sessions/host.ts';
import { handTo, type Request } from '../answers.ts';
import { isOwed, NO_LINE, takeApart } from '../batches.ts';
import type { HttpContext } from './context.ts';
import { beginExchange } from './exchange.ts';
import { acceptsBoth, isJson, mismatchOf, paramMismatchOf, viaOf } from './headers.ts';
import {
  HEADER_MISMATCH,
  type HttpRequest,
  invalid,
  onGone,
  refuse,
  refuseBusy,
  refuseThrown,
  sendEmpty,
  sendJson,
  sessionOf,
  speaksOurVersion,
} from './request.ts';

const NO_PARAMS = Buffer.from('{}');

export function post(door: HttpContext, http: HttpRequest): void {
  const { headers } = http.req;
  if (!isJson(headers)) return invalid(http, 415, 'the body must be JSON; send Content-Type: application/json');
  if (!acceptsBoth(headers))
    return invalid(http, 406, 'send Accept: application/json, text/event-stream, since the answer may be either');
  if (!speaksOurVersion(http)) return;
  readMessage(door, http, (frame) => take(door, http, frame));
}

function take(door: HttpContext, http: HttpRequest, frame: Frame): void {
  const id = frame.kind === 'request' ? frame.id : undefined;
  const mismatch = mismatchOf(http.req.headers, frame);
  if (mismatch) return refuse(http, 400, { rpc: HEADER_MISMATCH, message: mismatch, id });
  if (frame.kind === 'request' && frame.method === 'initialize') return void initialize(door, http, frame);
  const session = sessionOf(door, http, id);
  if (!session) return;
  if (frame.kind === 'batch') return takeBatch(door, http, session, frame.frames);
  if (frame.kind !== 'request') {
    handTo(session, frame, NO_LINE, door.onFault);
    return sendEmpty(http, 202);
  }
  const param = door.headerDeclarations && paramMismatchOf(http.req.headers, frame, door.headerDeclarations, session);
  if (param) return refuse(http, 400, { rpc: HEADER_MISMATCH, message: param, id });
  if (door.readers.isFull(session.id)) {
    const { maxStreams } = door.settings;
    return refuseBusy(http, `the session has ${maxStreams} open streams already (x-troupe.http.maxStreams)`, id);
  }
  handTo(session, frame, beginExchange(door, http, session, frame.id), door.onFault);
}

async function initialize(door: HttpContext, http: HttpRequest, { id, params = NO_PARAMS }: Request): Promise<void> {
  const { principal, scope } = http;
  try {
    if (http.req.headers['mcp-session-id'] !== undefined) {
      if (!sessionOf(door, http, id)) return;
      return invalid(http, 400, 'the session is initialized already; leave out Mcp-Session-Id to begin another', id);
    }
    const { session, result } = await door.sessions.open({
      principal,
      door: 'http',
      scope,
      params,
      via: viaOf(http.req.headers),
    });
    sendJson(http, 200, resultFrame(id, result), ['Mcp-Session-Id', session.id]);
  } catch (error) {
    refuseThrown(http, door, error, { id });
  }
}

/** Calls in flight are cancelled, and their streams end with that answer; the standing one ends by itself. */
export async function end(door: HttpContext, http: HttpRequest): Promise<void> {
  if (!speaksOurVersion(http)) return;
  try {
    const session = sessionOf(door, http);
    if (!session) return;
    await session.end();
    sendEmpty(http, 200);
  } catch (error) {
    refuseThrown(http, door, error);
  }
}

// ── A batch, which only hosts of 2025-03-26 send ─────────────────────────────

/**
 * A batch is answered as one JSON array and never as a stream: an array comes whole or not at all, so that no answer in it can
 * be lost or come twice when a daemon dies.
 */
function takeBatch(door: HttpContext, http: HttpRequest, session: HostSession, frames: readonly Frame[]): void {
  if (!codecOf(session.era).allowsBatches)
    return invalid(http, 400, `MCP ${session.era} has no batches; send one message in each POST`);
  if (frames.some((frame) => frame.kind === 'request' && frame.method === 'initialize'))
    return invalid(http, 400, 'initialize must not be part of a batch; send it alone');
  const leave = session.hold();
  let isAnswered = false;
  const finish = (): void => {
    isAnswered = true;
    door.owed.remove();
    leave();
  };
  door.owed.add();
  const line = {
    isMute: true,
    tell: (frame: Buffer) => refuseQuestion(door, session, frame),
    answer(all: Buffer): void {
      finish();
      sendJson(http, 200, all);
    },
  };
  takeApart(frames, line, (frame, to) => handTo(session, frame, to, door.onFault));
  const abandon = (): void => {
    if (isAnswered) return;
    for (const frame of frames) if (frame.kind === 'request') session.callerIs('gone', frame.id);
  };
  if (!isAnswered) onGone(http, abandon); // there is no stream to come back to
  if (frames.some(isOwed)) return;
  finish();
  sendEmpty(http, 202);
}

/** An array has no room for messages before the answers: progress is left out, and a question is refused for the host. */
function refuseQuestion({ onFault }: HttpContext, session: HostSession, frame: Buffer): void {
  const told = readFrame(frame);
  if (told.kind === 'request') handTo(session, { kind: 'error', id: told.id, error: CANNOT_ASK }, NO_LINE, onFault);
}

const CANNOT_ASK = Buffer.from('{"code":-32601,"message":"a host cannot be asked back for a request of a batch"}');

// ── The body ─────────────────────────────────────────────────────────────────

/** One JSON-RPC message, or the refusal that it deserves. */
export function readMessage(
  door: HttpContext,
  http: HttpRequest,
  onFrame: (frame: Frame, bytes: number) => void,
): void {
  const { maxBodyBytes } = door.settings;
  const onBody = (body: Buffer): void => {
    const frame = readFrame(body);
    if (frame.kind === 'malformed') return refuse(http, 400, { rpc: frame.code, message: frame.why, id: frame.id });
    try {
      onFrame(frame, body.length);
    } catch (error) {
      refuseThrown(http, door, error, frame.kind === 'request' ? { id: frame.id } : {});
    }
  };
  const onTooLarge = (): void => {
    const message = `the body has more than ${maxBodyBytes} bytes (x-troupe.http.maxBodyBytes)`;
    refuse(http, 413, { rpc: FAILURES.tooLarge.rpc, message });
  };
  const onCrowded = (): void =>
    refuse(http, 503, { rpc: FAILURES.busy.rpc, message: CROWDED, headers: ['Retry-After', '5'] });
  readBody(http.req, { maxBytes: maxBodyBytes, arriving: door.arriving, onBody, onTooLarge, onCrowded });
}

const CROWDED = 'too many large requests are on their way in; send it again soon';

type Body = {
  readonly maxBytes: number;
  /** Counts those of all requests that do not come in one piece. */
  readonly arriving: HttpContext['arriving'];
  readonly onBody: (body: Buffer) => void;
  readonly onTooLarge: () => void;
  readonly onCrowded: () => void;
};

/** Handed over by callback: a promise would put off every call to a later turn. */
function readBody(req: IncomingMessage, { maxBytes, arriving, onBody, onTooLarge, onCrowded }: Body): void {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
    onTooLarge();
    return discard(req, maxBytes);
  }
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let size = 0;
  let counted = 0;
  const leave = (): void => {
    arriving.bytes -= counted;
    counted = 0;
  };
  const giveUp = (answer: () => void): void => {
    req.off('data', take).off('end', finish);
    leave();
    chunks = undefined;
    answer();
    discard(req, maxBytes);
  };
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > maxBytes) return giveUp(onTooLarge);
    if (!first) {
      first = chunk;
      return;
    }
    if (!chunks) {
      chunks = [first];
      req.once('close', leave);
    }
    chunks.push(chunk);
    arriving.bytes += size - counted;
    counted = size;
    if (arriving.bytes > arriving.most) giveUp(onCrowded);
  };
  const finish = (): void => {
    leave();
    onBody(chunks ? Buffer.concat(chunks, size) : (first ?? Buffer.alloc(0)));
  };
  req.on('data', take).on('end', finish);
}

/** A body that was refused is read on for a while, or the refusal would be lost when the connection breaks. */
function discard(req: IncomingMessage, maxBytes: number): void {
  let size = 0;
  req.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) req.destroy();
  });
}
