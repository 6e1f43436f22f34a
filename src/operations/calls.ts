// A call that the owner makes over the control socket: it is told of progress, may be given up, and ends in a result or in
// the failure as the call met it.

import { randomUUID } from 'node:crypto';
import { type Failure, failing, TroupeError, thrownWhole } from '../protocol/failures.ts';
import { member, stringOf } from '../protocol/json.ts';
import { hasName, isCall, rowOf } from '../protocol/methods.ts';
import type { Fleet } from '../servers/fleet.ts';
import { type Caller, type Given, OWNER } from './parameters.ts';

export type WantedCall = {
  readonly server: string;
  readonly method: string;
  /** What the call is about, for audit and for the allow list. */
  readonly name: string;
  readonly params: Buffer;
  readonly timeoutMs?: number;
};

const NOTHING = Buffer.alloc(0);

/** The parameters are never parsed as a whole: those of a tool may be many megabytes, and arrive as they were sent. */
export function callOf({ bytes }: Given): WantedCall {
  const text = (json: Buffer, key: string) => stringOf(member(json, key) ?? NOTHING);
  const method = text(bytes, 'method') ?? '';
  if (!isCall(method)) throw new TroupeError('unsupported', `${method || 'nothing'} is not a method to call`);
  const params = member(bytes, 'params') ?? Buffer.from('{}');
  const timeoutMs = Number(member(bytes, 'timeoutMs')?.toString() ?? Number.NaN);
  const name = stringOf(member(params, 'name') ?? member(params, 'uri') ?? NOTHING) ?? '';
  const target = rowOf(method)?.target;
  if (target && name === '')
    throw new TroupeError('invalid', `${method} wants ${hasName(target.kind) ? 'a name' : 'a uri'} that is not empty`);
  return { server: text(bytes, 'server') ?? '', method, name, params, ...(timeoutMs > 0 && { timeoutMs }) };
}

export function call(
  { fleet }: { readonly fleet: Pick<Fleet, 'submit' | 'cancel'> },
  wanted: WantedCall,
  { principal = OWNER, signal, tell }: Caller,
): Promise<Buffer> {
  const requestId = randomUUID();
  const { server, method, name, params, timeoutMs } = wanted;
  return new Promise((resolve, reject) => {
    const giveUp = () => void fleet.cancel(principal, requestId, signal?.reason.message);
    const isKnown = fleet.submit({
      requestId,
      server,
      method,
      name,
      params,
      principal,
      door: 'control',
      isCancellable: true,
      ...(timeoutMs !== undefined && { timeoutMs }),
      onSignal: (news) => tell?.(news),
      settle(outcome) {
        signal?.removeEventListener('abort', giveUp);
        if (outcome.ok) resolve(outcome.result);
        else reject(failing(outcome.failure));
      },
    });
    if (isKnown) signal?.addEventListener('abort', giveUp);
    else reject(new TroupeError('unknownServer', `there is no server ${server}; troupe ps lists them`));
  });
}

/** False for a request that is not in flight here, or is another caller's. */
export const cancelCall = (
  { fleet }: { readonly fleet: Pick<Fleet, 'cancel'> },
  { requestId }: { readonly requestId: string },
  { principal = OWNER }: Caller,
): boolean => fleet.cancel(principal, requestId, 'the caller cancelled it');

/** The failure that was thrown whole, or the one that a thrown sentence is. */
export function thrownFailure(error: unknown): Failure {
  if (!(error instanceof TroupeError))
    return { code: 'internal', delivery: 'not sent', message: error instanceof Error ? error.message : String(error) };
  return thrownWhole(error) ?? { code: error.code, delivery: 'not sent', message: error.message };
}
