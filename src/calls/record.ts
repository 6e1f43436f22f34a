// What is kept of a call that ended: a record of the audit, and a line in the log, which for calls that went well is there for
// who debugs. Neither delays the answer, and neither holds arguments or results: they belong to the caller.

import type { Logger } from 'pino';
import { rpcCodeOf } from '../protocol/failures.ts';
import type { Store } from '../store/store.ts';
import type { Call, Outcome } from './call.ts';
import { now } from './deadlines.ts';
import { nameIn } from './outcomes.ts';
import type { InFlight } from './request.ts';

export type Recorder = (request: InFlight, outcome: Outcome, logger: Logger) => void;

/** How the secrets that are known are taken out of a text. */
type Mask = (text: string) => string;

/** A resource's URI may be as long as a message: so much of it is looked through, and so much is kept. */
const MASKED_CHARACTERS = 65_536;
const NAME_CHARACTERS = 1_024;

export function createRecorder(store: Store, daemon: string, mask: Mask): Recorder {
  return ({ call, startedAt }, outcome, logger) => {
    const micros = Math.round((now() - startedAt) * 1000);
    const { door, principal, requestId, server, method } = call;
    const name = masked(call.name, NAME_CHARACTERS, mask);
    const verdict = outcome.ok ? (outcome.isError ? 'tool error' : 'ok') : outcome.failure.code;
    const error = outcome.ok ? '' : maskedSentence(call, outcome.failure.message, mask);
    store.note({
      at: Date.now(),
      daemon,
      door,
      principal,
      requestId,
      server,
      method,
      name,
      outcome: verdict,
      code: outcome.ok ? 0 : rpcCodeOf(outcome.failure),
      error,
      micros,
      bytesIn: call.params.length,
      bytesOut: outcome.ok ? outcome.result.length : 0,
    });
    if (!outcome.ok) logger.warn({ method, target: name, principal, micros, verdict, error }, 'call');
    else if (outcome.isError) logger.info({ method, target: name, principal, micros, verdict }, 'call');
    else if (logger.isLevelEnabled('debug')) logger.debug({ method, target: name, principal, micros, verdict }, 'call');
  };
}

/** Masked first and then cut, because a part of a secret is not known as one. */
const masked = (text: string, most: number, mask: Mask): string =>
  mask(text.slice(0, MASKED_CHARACTERS)).slice(0, most);

/** The sentence may name the call by a part of its name, which its caller may hear. */
function maskedSentence(call: Call, sentence: string, mask: Mask): string {
  const shown = nameIn(call);
  return mask(sentence.replace(shown, () => masked(call.name || call.method, shown.length, mask)));
}
