// Requests of our own to a server: the handshake, lists, pings, subscriptions. They run the same chart as a caller's.

import { randomUUID } from 'node:crypto';
import type { Call } from '../calls/call.ts';
import type { Lane } from '../calls/lane.ts';
import type { Ask } from '../catalog/fetch.ts';
import { type Failure, rpcCodeOf, TroupeError } from '../protocol/failures.ts';

/** The result's bytes, or a TroupeError with the server's own words. */
export function asker(lane: Lane, server: string): Ask {
  return (method, params, timeoutMs) =>
    new Promise((resolve, reject) => {
      const call: Call = {
        requestId: randomUUID(),
        server,
        method,
        name: '',
        params: Buffer.from(JSON.stringify(params)),
        principal: '_',
        door: 'troupe',
        ...(timeoutMs !== undefined && { timeoutMs }),
        settle: (outcome) => (outcome.ok ? resolve(outcome.result) : reject(asError(method, outcome.failure))),
      };
      lane.ask(call);
    });
}

function asError(method: string, failure: Failure): TroupeError {
  if (!failure.error) return new TroupeError(failure.code, failure.message);
  const text = failure.error.toString('utf8').slice(0, 300);
  return new TroupeError('rejected', `${method} was answered with error ${rpcCodeOf(failure)}: ${text}`);
}
