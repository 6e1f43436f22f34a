// What a caller is told when a call ends. Every failure names the server, its state and why, and says whether the
// request was sent, because only the caller knows if it may be sent again.

import type { Delivery, Failure, FailureCode } from '../protocol/failures.ts';
import { member } from '../protocol/json.ts';
import type { Outcome } from './call.ts';
import type { InFlight } from './request.ts';

/** Whether a server takes calls: at once, soon, or not at all. */
export type Gate =
  | { readonly mode: 'open'; readonly state: string; readonly why: string }
  | { readonly mode: 'hold'; readonly state: string; readonly why: string }
  | { readonly mode: 'refuse'; readonly state: string; readonly why: string };

const FATE: Record<Delivery, string> = {
  'not sent': 'the request was not sent',
  'outcome unknown': 'the request was sent and its outcome is unknown',
  failed: 'the request failed',
};

/** States that pass by themselves. */
const PASSING: Record<string, string> = {
  waiting: 'it is restarting, try again',
  draining: 'it is closing, try again soon',
  closing: 'it is closing, try again soon',
};

export type Outcomes = ReturnType<typeof outcomes>;

export function outcomes(server: string) {
  const fail = (code: FailureCode, delivery: Delivery, message: string, gate?: Gate): Failure => ({
    ...{ code, delivery, message, server },
    ...(gate && { state: gate.state }),
  });
  const ended = (failure: Failure): Outcome => ({ ok: false, failure });

  return {
    result: (result: Buffer): Outcome => ({ ok: true, result, isError: saysIsError(result) }),
    rejected: (error: Buffer): Outcome =>
      ended({ ...fail('rejected', 'failed', `server ${server} answered with an error`), error }),
    cancelled: ({ why }: InFlight, gate: Gate, delivery: Delivery): Outcome =>
      ended(
        fail('cancelled', delivery, `call to ${server} was cancelled${why && `: ${why}`}; ${FATE[delivery]}`, gate),
      ),
    timeout: ({ deadline, startedAt, call }: InFlight, gate: Gate, delivery: Delivery): Outcome => {
      const waited = Math.round(deadline - startedAt);
      const message = `server ${server} (${gate.state}) did not answer ${call.name || call.method} within ${waited} ms`;
      return ended(fail('timeout', delivery, `${message}; ${FATE[delivery]}`, gate));
    },
    gone: ({ why }: InFlight, gate: Gate, delivery: Delivery): Outcome => {
      const code = delivery === 'not sent' ? 'unavailable' : 'lost';
      return ended(
        fail(code, delivery, `server ${server} went away: ${why || gate.why || gate.state}; ${FATE[delivery]}`, gate),
      );
    },
    refusal(gate: Gate): Outcome {
      const because = gate.why ? `: ${gate.why}` : '';
      const remedy = PASSING[gate.state] ?? `troupe start ${server}`;
      const message =
        gate.state === 'needs login' // which says the remedy itself
          ? `server ${server} needs login${because}`
          : `server ${server} is ${gate.state}${because}; ${remedy}`;
      return ended(fail('unavailable', 'not sent', message, gate));
    },
    busy: (queued: number): Outcome =>
      ended(fail('busy', 'not sent', `server ${server} has ${queued} calls waiting; try later or raise maxQueued`)),
  };
}

/** The ends of a request's chart, each with what its caller is told. */
export function endings(say: Outcomes, gate: () => Gate, finish: (request: InFlight, outcome: Outcome) => void) {
  const refused = ({ refusal }: InFlight): Outcome | undefined => refusal && { ok: false, failure: refusal };
  return {
    answerResult: (request: InFlight) => finish(request, say.result(request.body)),
    answerError: (request: InFlight) => finish(request, say.rejected(request.body)),
    answerCancelledUnsent: (request: InFlight) => finish(request, say.cancelled(request, gate(), 'not sent')),
    answerCancelled: (request: InFlight) => finish(request, say.cancelled(request, gate(), 'outcome unknown')),
    answerTimeoutUnsent: (request: InFlight) => finish(request, say.timeout(request, gate(), 'not sent')),
    answerTimeout: (request: InFlight) => finish(request, say.timeout(request, gate(), 'outcome unknown')),
    answerUnsent: (request: InFlight) => finish(request, refused(request) ?? say.gone(request, gate(), 'not sent')),
    answerLost: (request: InFlight) =>
      finish(request, refused(request) ?? say.gone(request, gate(), 'outcome unknown')),
  };
}

const IS_ERROR = Buffer.from('"isError"');

/** Looks for the member only where the bytes occur at all: most results never mention it. */
function saysIsError(result: Buffer): boolean {
  return result.includes(IS_ERROR) && member(result, 'isError')?.toString('latin1') === 'true';
}
