// POST /mcp: one message of a host. `initialize` opens a session; everything else belongs to one. Requests are answered
// here, on this response; notifications and responses are taken with 202.

import { resultFrame } from '../../protocol/compose.ts';
import { FAILURES } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import type { HostSession } from '../../sessions/host.ts';
import { handTo, type Request } from '../answers.ts';
import { NO_LINE } from '../batches.ts';
import { takeBatch } from './batch.ts';
import { acceptsBoth, isJson, readBody } from './bodies.ts';
import { beginExchange } from './exchange.ts';
import { mismatchOf, paramMismatchOf } from './headers.ts';
import { sessionOf, speaksOurVersion } from './session.ts';
import {
  HEADER_MISMATCH,
  type House,
  invalid,
  refuse,
  refuseBusy,
  refuseThrown,
  sendEmpty,
  sendJson,
  type Visit,
} from './visit.ts';

const NO_PARAMS = Buffer.from('{}');

export function post(house: House, visit: Visit): void {
  const { headers } = visit.req;
  if (!isJson(headers)) return invalid(visit, 415, 'the body must be JSON; send Content-Type: application/json');
  if (!acceptsBoth(headers))
    return invalid(visit, 406, 'send Accept: application/json, text/event-stream, since the answer may be either');
  if (!speaksOurVersion(visit)) return;
  readMessage(house, visit, (frame) => take(house, visit, frame));
}

/** One JSON-RPC message, or the refusal that it deserves. */
export function readMessage(house: House, visit: Visit, onFrame: (frame: Frame, bytes: number) => void): void {
  const { maxBodyBytes } = house.settings;
  const onBody = (body: Buffer): void => {
    const frame = readFrame(body);
    if (frame.kind === 'malformed') return refuse(visit, 400, { rpc: frame.code, message: frame.why, id: frame.id });
    try {
      onFrame(frame, body.length);
    } catch (error) {
      refuseThrown(visit, house, error, frame.kind === 'request' ? { id: frame.id } : {});
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
    handTo(session, frame, NO_LINE, house.onFault);
    return sendEmpty(visit, 202);
  }
  const param =
    house.headerDeclarations && paramMismatchOf(visit.req.headers, frame, house.headerDeclarations, session);
  if (param) return refuse(visit, 400, { rpc: HEADER_MISMATCH, message: param, id });
  if (isFull(house, visit, session, id)) return;
  handTo(session, frame, beginExchange(house, visit, session, frame.id), house.onFault);
}

async function initialize(house: House, visit: Visit, { id, params = NO_PARAMS }: Request): Promise<void> {
  const { principal, scope } = visit;
  try {
    if (visit.req.headers['mcp-session-id'] !== undefined) {
      if (!sessionOf(house, visit, id)) return;
      return invalid(visit, 400, 'the session is initialized already; leave out Mcp-Session-Id to begin another', id);
    }
    const { session, result } = await house.sessions.open({ principal, door: 'http', scope, params });
    sendJson(visit, 200, resultFrame(id, result), ['Mcp-Session-Id', session.id]);
  } catch (error) {
    refuseThrown(visit, house, error, { id });
  }
}

function isFull({ readers, settings }: House, visit: Visit, session: HostSession, id?: string): boolean {
  if (!readers.isFull(session.id)) return false;
  refuseBusy(visit, `the session has ${settings.maxStreams} open streams already (x-troupe.http.maxStreams)`, id);
  return true;
}
