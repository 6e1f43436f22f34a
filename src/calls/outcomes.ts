// What a caller is told when a call ends. Every failure names the server, its state and why, and says whether the
// request was sent, because only the caller knows if it may be sent again.

import type { Delivery, Failure, FailureCode } from '../protocol/failures.ts';
import { member } from '../protocol/json.ts';
import type { Call, Outcome } from './call.ts';
import type { InFlight } from './request.ts';

/** Whether a server takes calls: at once, soon, or not at all. `why` is the trouble that it is in, if any. */
export type Gate = {
  readonly mode: 'open' | 'hold' | 'refuse';
  readonly state: string;
  readonly why: string;
  /** What a caller hears who is refused; without it: `is <state>`, and how to start the server. */
  readonly says?: string;
  readonly remedy?: string;
};

const FATE: Record<Delivery, string> = {
  'not sent': 'the request was not sent',
  'outcome unknown': 'the request was sent and its outcome is unknown',
  failed: 'the request failed',
};

const NAMED_CHARACTERS = 128;

/** What a call is about, as a sentence names it. A URI may be as long as a message. */
export const nameIn = ({ name, method }: Pick<Call, 'name' | 'method'>): string =>
  (name || method).slice(0, NAMED_CHARACTERS);

export type Outcomes = ReturnType<typeof outcomes>;

export function outcomes(server: string) {
  const fail = (code: FailureCode, delivery: Delivery, message: string, state?: string): Outcome => ({
    ok: false,
    failure: { code, delivery, message, server, ...(state !== undefined && { state }) },
  });

  return {
    result: (result: Buffer): Outcome => ({ ok: true, result, isError: saysIsError(result) }),
    rejected: (error: Buffer): Outcome => ({
      ok: false,
      failure: {
        code: 'rejected',
        delivery: 'failed',
        message: `server ${server} answered with an error`,
        server,
        error,
      },
    }),
    refused: (failure: Failure): Outcome => ({ ok: false, failure }),
    cancelled: ({ why }: InFlight, { state }: Gate, delivery: Delivery): Outcome =>
      fail('cancelled', delivery, `call to ${server} was cancelled${why && `: ${why}`}; ${FATE[delivery]}`, state),
    timeout: ({ deadline, startedAt, call, question }: InFlight, { state }: Gate, delivery: Delivery): Outcome => {
      const waited = Math.round(deadline - startedAt);
      const message = `server ${server} (${state}) did not answer ${nameIn(call)} within ${waited} ms`;
      const why = question && `, and nobody answered what it asked (\`${question}\` would have)`;
      return fail('timeout', delivery, `${message}${why}; ${FATE[delivery]}`, state);
    },
    gone: ({ why }: InFlight, gate: Gate, delivery: Delivery): Outcome => {
      const code = delivery === 'not sent' ? 'unavailable' : 'lost';
      const reason = why || gate.why || gate.state;
      return fail(code, delivery, `server ${server} went away: ${reason}; ${FATE[delivery]}`, gate.state);
    },
    refusal({ state, why, says = `is ${state}`, remedy = `troupe start ${server}` }: Gate): Outcome {
      const message = `server ${server} ${says}${why && `: ${why}`}${remedy && `; ${remedy}`}`;
      return fail('unavailable', 'not sent', message, state);
    },
    busy: (queued: number): Outcome =>
      fail('busy', 'not sent', `server ${server} has ${queued} calls waiting; try later or raise maxQueued`),
    heavy: (bytes: number): Outcome =>
      fail(
        'busy',
        'not sent',
        `calls of ${bytes} bytes wait for their answers; send this one again when some have theirs`,
      ),
  };
}

type Finish = (request: InFlight, outcome: Outcome, isRecorded?: boolean) => void;

/** The answers that the chart of a request orders, each with what its caller is told. */
export function answers(say: Outcomes, gate: () => Gate, finish: Finish) {
  const refusedOr = ({ refusal }: InFlight, other: Outcome): Outcome => (refusal ? say.refused(refusal) : other);
  const answer = (outcomeOf: (request: InFlight) => Outcome) => (request: InFlight) =>
    finish(request, outcomeOf(request));
  return {
    answerResult: answer(({ body }) => say.result(body)),
    answerError: answer(({ body }) => say.rejected(body)),
    answerSentBack: (request: InFlight) => finish(request, say.rejected(request.body), true),
    answerCancelledUnsent: answer((request) => say.cancelled(request, gate(), 'not sent')),
    answerCancelledRejected: answer((request) => say.cancelled(request, gate(), 'failed')),
    answerCancelled: answer((request) => say.cancelled(request, gate(), 'outcome unknown')),
    answerTimeoutUnsent: answer((request) => say.timeout(request, gate(), 'not sent')),
    answerTimeout: answer((request) => say.timeout(request, gate(), 'outcome unknown')),
    answerRefused: answer((request) => refusedOr(request, say.refusal(gate()))),
    answerUnsent: answer((request) => refusedOr(request, say.gone(request, gate(), 'not sent'))),
    answerLost: answer((request) => refusedOr(request, say.gone(request, gate(), 'outcome unknown'))),
  };
}

const IS_ERROR = Buffer.from('"isError"');

/** Looks for the member only where the bytes occur at all: most results never mention it. */
function saysIsError(result: Buffer): boolean {
  return result.includes(IS_ERROR) && member(result, 'isError')?.toString('latin1') === 'true';
}
