// What is kept of a call that ended: a record of the audit, and a line in the log, which for calls that went well is there for
// who debugs. Neither delays the answer, and neither holds arguments or results: they belong to the caller.

import type { Logger } from 'pino';
import { rpcCodeOf } from '../protocol/failures.ts';
import type { Store } from '../store/store.ts';
import type { Outcome } from './call.ts';
import { now } from './deadlines.ts';
import { type Mask, namedBy } from './outcomes.ts';
import type { InFlight } from './request.ts';

export type Recorder = (request: InFlight, outcome: Outcome, logger: Logger) => void;

/** A resource's URI may be as long as a message. */
const NAME_CHARACTERS = 1_024;

export function createRecorder(store: Store, daemon: string, mask: Mask): Recorder {
  return ({ call, startedAt }, outcome, logger) => {
    const micros = Math.round((now() - startedAt) * 1000);
    const { door, principal, requestId, server, method } = call;
    const name = call.name && namedBy(call, mask, NAME_CHARACTERS);
    const verdict = outcome.ok ? (outcome.isError ? 'tool error' : 'ok') : outcome.failure.code;
    const error = outcome.ok ? '' : mask(outcome.failure.message);
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
