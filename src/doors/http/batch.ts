// A batch in one POST, which only hosts of 2025-03-26 send. It is answered as one JSON array and never as a stream: an array
// comes whole or not at all, so no answer of it can be lost or come twice when a daemon dies.

import { codecOf } from '../../protocol/eras.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import type { HostSession } from '../../sessions/host.ts';
import { handTo } from '../answers.ts';
import { isOwed, NO_LINE, takeApart } from '../batches.ts';
import { type House, invalid, sendEmpty, sendJson, type Visit } from './visit.ts';

export function takeBatch(house: House, visit: Visit, session: HostSession, frames: readonly Frame[]): void {
  if (!codecOf(session.era).allowsBatches)
    return invalid(visit, 400, `MCP ${session.era} has no batches; send one message in each POST`);
  if (frames.some((frame) => frame.kind === 'request' && frame.method === 'initialize'))
    return invalid(visit, 400, 'initialize must not be part of a batch; send it alone');
  const leave = session.hold();
  const finish = (): void => {
    house.owed.count -= 1;
    leave();
  };
  house.owed.count += 1;
  const line = {
    tell: (frame: Buffer) => refuseQuestion(house, session, frame),
    answer(all: Buffer): void {
      finish();
      sendJson(visit, 200, all);
    },
  };
  takeApart(frames, line, (frame, to) => handTo(session, frame, to, house.onFault));
  if (frames.some(isOwed)) return;
  finish();
  sendEmpty(visit, 202);
}

/** An array has no room for what belongs to a request. Progress is not missed; a question is one that somebody waits for. */
function refuseQuestion({ onFault }: House, session: HostSession, frame: Buffer): void {
  const told = readFrame(frame);
  if (told.kind === 'request') handTo(session, { kind: 'error', id: told.id, error: CANNOT_ASK }, NO_LINE, onFault);
}

const CANNOT_ASK = Buffer.from('{"code":-32601,"message":"a host cannot be asked back for a request of a batch"}');
