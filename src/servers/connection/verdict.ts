// What the answer to a ping, or its want, says of the health of its server: the one rule. Any answer is a sign of life, also an
// error and a status of HTTP; 429 and 5xx, and a connection that breaks, are signs of illness; only silence and an address that
// cannot be reached are none of life.

import type { Outcome } from '../../calls/call.ts';
import { type Failure, rpcCodeOf } from '../../protocol/failures.ts';

export type Verdict =
  | { readonly is: 'alive' | 'deaf' | 'silent' }
  | { readonly is: 'ill'; readonly why: string; readonly retryMs: number }
  | { readonly is: 'unreachable'; readonly why: string };

const NO_METHOD = -32601;
/** Not found, not allowed, not implemented: servers of newer versions of MCP have no ping. */
const UNKNOWN: readonly number[] = [404, 405, 501];

export function verdictOn(outcome: Outcome): Verdict {
  if (outcome.ok) return { is: 'alive' };
  const { failure } = outcome;
  const { code, error, http } = failure;
  if (error ? rpcCodeOf(failure) === NO_METHOD : http && UNKNOWN.includes(http.status)) return { is: 'deaf' };
  if (http) return isTrouble(http.status) ? ill(failure) : { is: 'alive' };
  if (code === 'unavailable') return { is: 'unreachable', why: reasonOf(failure) };
  if (code === 'timeout') return { is: 'silent' };
  return code === 'lost' ? ill(failure) : { is: 'alive' };
}

/** What a call that failed says of its server, which may be gone altogether; undefined when the server has answered. */
export function doubtAfter(failure: Failure): Verdict | undefined {
  if (failure.http) return undefined;
  if (failure.code === 'unavailable') return { is: 'unreachable', why: reasonOf(failure) };
  return failure.code === 'lost' ? { is: 'silent' } : undefined;
}

const isTrouble = (status: number): boolean => status === 429 || status >= 500;

const ill = (failure: Failure): Verdict => ({
  is: 'ill',
  why: reasonOf(failure),
  retryMs: failure.http?.retryMs ?? 0,
});

/** What became of the request is of no interest to those who ask how the server is. */
const reasonOf = ({ message }: Failure): string =>
  message.replace(
    /; the (request was (not sent|sent and its outcome is unknown)|outcome of the request is unknown)$/,
    '',
  );
