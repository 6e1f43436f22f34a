// The messages of a host whose session is open, whatever connection they come over: each request is answered exactly once, a
// batch as one, and a session that throws is a fault of ours, which costs that one request and nothing else.

import { Transients } from '../calls/transients.ts';
import { errorFrame } from '../protocol/compose.ts';
import { codecOf } from '../protocol/eras.ts';
import { errorObject, type Failure, failureOf } from '../protocol/failures.ts';
import type { Frame, Malformed } from '../protocol/frame.ts';
import type { HostSession, Line } from '../sessions/host.ts';
import { NO_LINE, refusalFrame, takeApart } from './batches.ts';

export type AnswersOptions = {
  /** Takes a frame with its newline, and never throws. */
  readonly send: (frame: Buffer) => void;
  readonly onFault: (error: unknown) => void;
  /** An answer has been sent. */
  readonly onAnswered?: () => void;
  /** Whether nobody hears what is sent just now, though the host may come back. */
  readonly isAbsent?: () => boolean;
};
export type Answers = ReturnType<typeof createAnswers>;
export type Request = Extract<Frame, { kind: 'request' }>;

/** The answer to requests of a session that has ended elsewhere. */
export const ENDED: Failure = {
  code: 'unavailable',
  delivery: 'not sent',
  message: 'the session has ended; begin a new one',
};

export function createAnswers({ send, onFault, onAnswered, isAbsent }: AnswersOptions) {
  /** Ids of requests that are not answered yet, as raw JSON. */
  const inFlight = new Transients<string, string>();
  let refusal: Failure | undefined;

  function take(session: HostSession, frame: Frame): void {
    if (frame.kind === 'batch') return batch(session, frame.frames);
    if (frame.kind === 'malformed') return send(refusalFrame(frame));
    if (frame.kind !== 'request') return handTo(session, frame, NO_LINE, onFault);
    const refused = refusedFrame(frame);
    if (refused) return send(refused);
    const { id } = frame;
    inFlight.set(id, id);
    const answer = (response: Buffer): void => {
      if (!inFlight.delete(id)) return;
      send(response);
      onAnswered?.();
    };
    handTo(session, frame, { tell: send, answer, isAbsent }, onFault);
  }

  function batch(session: HostSession, frames: readonly Frame[]): void {
    if (!codecOf(session.era).allowsBatches) return send(refusalFrame(NO_BATCH));
    const ids: string[] = [];
    const answer = (response: Buffer): void => {
      for (const id of ids) inFlight.delete(id);
      send(response);
      onAnswered?.();
    };
    takeApart(frames, { tell: send, answer, isAbsent }, (frame, to) => {
      const refused = frame.kind === 'request' && refusedFrame(frame);
      if (refused) return to.answer(refused);
      if (frame.kind === 'request') {
        ids.push(frame.id);
        inFlight.set(frame.id, frame.id);
      }
      handTo(session, frame, to, onFault);
    });
  }

  function refusedFrame({ id, method }: Request): Buffer | undefined {
    if (refusal) return errorFrame(id, errorObject(refusal));
    if (method === 'initialize') return refusalFrame({ ...INITIALIZED, id });
    if (!inFlight.has(id)) return undefined;
    const message = `a request with the id ${id.slice(0, 64)} is in flight`;
    return errorFrame(id, errorObject({ code: 'invalid', delivery: 'not sent', message }));
  }

  return {
    take,
    inFlight: inFlight as Iterable<string> & { readonly size: number },
    /** From now on every request is answered with this. */
    refuse(failure: Failure): void {
      refusal = failure;
    },
  };
}

/** Whatever a session throws is answered on the line, if an answer is owed; a line takes only one. */
export function handTo(session: HostSession, frame: Frame, line: Line, onFault: (error: unknown) => void): void {
  try {
    session.receive(frame, line);
  } catch (error) {
    if (frame.kind !== 'request') return onFault(error);
    line.answer(errorFrame(frame.id, errorObject(failureOf(error, onFault, 'outcome unknown'))));
  }
}

const INITIALIZED: Malformed = { kind: 'malformed', code: -32600, why: 'this session is initialized already' };
const NO_BATCH: Malformed = {
  kind: 'malformed',
  code: -32600,
  why: 'batches are part of MCP 2025-03-26 only; send one message at a time',
};
