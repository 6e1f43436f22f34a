// POST /mcp: one message of a host. `initialize` opens a session; everything else belongs to one. Requests are answered
// here, on this response; notifications and responses are taken with 202.

import { FAILURES } from '../../failures.ts';
import { errorFrame, resultFrame } from '../../protocol/compose.ts';
import { ERA_FACTS } from '../../protocol/eras.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import type { HostSession, Line } from '../../sessions/host.ts';
import { acceptsBoth, isJson, readBody } from './bodies.ts';
import { beginExchange } from './exchange.ts';
import { mismatchOf, paramMismatchOf } from './headers.ts';
import { sessionOf, speaksOurVersion } from './session.ts';
import {
  HEADER_MISMATCH,
  type House,
  INVALID_REQUEST,
  refuse,
  refuseBusy,
  refuseThrown,
  sendEmpty,
  sendJson,
  type Visit,
} from './visit.ts';

type Request = Extract<Frame, { kind: 'request' }>;

const NO_PARAMS = Buffer.from('{}');
/** Notifications and responses are answered by nobody. */
export const NO_LINE: Line = { tell: () => {}, answer: () => {} };

export function post(house: House, visit: Visit): void {
  const { headers } = visit.req;
  if (!isJson(headers)) return invalid(visit, 415, 'the body must be JSON; send Content-Type: application/json');
  if (!acceptsBoth(headers))
    return invalid(visit, 406, 'send Accept: application/json, text/event-stream, since the answer may be either');
  if (!speaksOurVersion(visit)) return;
  readMessage(house, visit, (frame) => take(house, visit, frame));
}

/** One JSON-RPC message, or the refusal that it deserves. */
export function readMessage(house: House, visit: Visit, onFrame: (frame: Frame) => void): void {
  const { maxBodyBytes } = house.settings;
  const onBody = (body: Buffer): void => {
    const frame = readFrame(body);
    if (frame.kind === 'malformed') return refuse(visit, 400, { rpc: frame.code, message: frame.why, id: frame.id });
    try {
      onFrame(frame);
    } catch (error) {
      refuseThrown(visit, house, error, frame.kind === 'request' ? frame.id : undefined);
    }
  };
  const onTooLarge = (): void => {
    const message = `the body has more than ${maxBodyBytes} bytes (x-troupe.http.maxBodyBytes)`;
    refuse(visit, 413, { rpc: FAILURES.tooLarge.rpc, message });
  };
  readBody(visit.req, maxBodyBytes, onBody, onTooLarge);
}

function take(house: House, visit: Visit, frame: Frame): void {
  const id = frame.kind === 'request' ? frame.id : undefined;
  const mismatch = mismatchOf(visit.req.headers, frame);
  if (mismatch) return refuse(visit, 400, { rpc: HEADER_MISMATCH, message: mismatch, id });
  if (frame.kind === 'request' && frame.method === 'initialize') return void initialize(house, visit, frame);
  const session = sessionOf(house, visit, id);
  if (!session) return;
  if (frame.kind === 'batch') return takeBatch(house, visit, session, frame.frames);
  if (frame.kind !== 'request') {
    session.receive(frame, NO_LINE);
    return sendEmpty(visit, 202);
  }
  const param =
    house.headerDeclarations && paramMismatchOf(visit.req.headers, frame, house.headerDeclarations, session);
  if (param) return refuse(visit, 400, { rpc: HEADER_MISMATCH, message: param, id });
  if (isFull(house, visit, session, id)) return;
  session.receive(frame, beginExchange(house, { visit, session, id: frame.id, owed: 1, isBatch: false }));
}

async function initialize(house: House, visit: Visit, { id, params = NO_PARAMS }: Request): Promise<void> {
  if (visit.req.headers['mcp-session-id'] !== undefined) {
    if (!sessionOf(house, visit, id)) return;
    return invalid(visit, 400, 'the session is initialized already; leave out Mcp-Session-Id to begin another', id);
  }
  const { principal, scope } = visit;
  try {
    const { session, result } = await house.sessions.open({ principal, door: 'http', scope, params });
    sendJson(visit, 200, resultFrame(id, result), ['Mcp-Session-Id', session.id]);
  } catch (error) {
    refuseThrown(visit, house, error, id);
  }
}

/** Only 2025-03-26 has them. Each message is on its own, but the answers come together. */
function takeBatch(house: House, visit: Visit, session: HostSession, frames: readonly Frame[]): void {
  if (!ERA_FACTS[session.era].batches)
    return invalid(visit, 400, `MCP ${session.era} has no batches; send one message in each POST`);
  if (frames.some((frame) => frame.kind === 'request' && frame.method === 'initialize'))
    return invalid(visit, 400, 'initialize must not be part of a batch; send it alone');
  const owed = frames.filter(({ kind }) => kind === 'request' || kind === 'malformed');
  if (owed.length > 0 && isFull(house, visit, session)) return;
  const [first] = owed;
  const id = (first && 'id' in first && first.id) || 'null';
  const line = first ? beginExchange(house, { visit, session, id, owed: owed.length, isBatch: true }) : NO_LINE;
  for (const frame of frames) {
    if (frame.kind === 'malformed') line.answer(errorFrame(frame.id ?? 'null', errorOf(frame.code, frame.why)));
    else session.receive(frame, frame.kind === 'request' ? line : NO_LINE);
  }
  if (owed.length === 0) sendEmpty(visit, 202);
}

function isFull({ readers, settings }: House, visit: Visit, session: HostSession, id?: string): boolean {
  if (!readers.isFull(session.id)) return false;
  refuseBusy(visit, `the session has ${settings.maxStreams} open streams already (x-troupe.http.maxStreams)`, id);
  return true;
}

const errorOf = (code: number, message: string): Buffer => Buffer.from(JSON.stringify({ code, message }));

function invalid(visit: Visit, status: number, message: string, id?: string): void {
  refuse(visit, status, { rpc: INVALID_REQUEST, message, id });
}
