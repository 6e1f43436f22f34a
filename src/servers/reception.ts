// Calls on their way from the doors to their server's lane and back: who must wait first, who may cancel, who is told, and
// what is kept of it.

import { createWaiting, type WaitingOptions } from '../asks/waiting/waiting.ts';
import type { Call, Outcome } from '../calls/call.ts';
import { createCancellable } from '../calls/cancellable.ts';
import type { Lane } from '../calls/lane.ts';
import type { Recorder } from '../calls/record.ts';
import { canAsk, type InFlight } from '../calls/request.ts';
import type { Member } from './member.ts';

export type ReceptionOptions = Omit<WaitingOptions, 'cancellable' | 'dispatch' | 'record'> & {
  readonly record: Recorder;
  /** A call was refused whose host may be told later that it need not be any more. */
  readonly noteVisits?: (member: Member, call: Call, outcome: Outcome) => void;
};

export function createReception(options: ReceptionOptions) {
  const cancellable = createCancellable();
  const waiting = createWaiting({ ...options, cancellable, dispatch, record: tally });

  function dispatch(member: Member, call: Call): InFlight | undefined {
    if (member.pool && canAsk(call)) return member.pool.submit(call, member);
    const request = member.lane.submit(call);
    if (request) placed(member.lane, request);
    return request;
  }

  /** It is in that lane from now on, and is cancelled there. */
  function placed(lane: Lane, request: InFlight): void {
    const { call } = request;
    if (call.isCancellable) cancellable.add(call, (why) => lane.cancel(request, why));
  }

  function tally(member: Member, request: InFlight, outcome: Outcome): void {
    member.calls++;
    if (!outcome.ok) member.errors++;
    options.record(request, outcome, member.logger);
  }

  return {
    submit(call: Call): boolean {
      const member = options.memberFor(call);
      if (!member) return false;
      if (!waiting.mustWait(member, call)) dispatch(member, call);
      return true;
    },
    /** Whether a call would reach its server at once, if it came now, behind so many others that are about to. */
    isClear(call: Call, ahead: number): boolean {
      const member = options.memberFor(call);
      if (!member || member.pool || member.lane.queued > 0) return false;
      return member.lane.room > ahead && waiting.isClear(member, call);
    },
    settled(member: Member, request: InFlight, outcome: Outcome): void {
      const { call } = request;
      if (call.onElicited && !outcome.ok) options.noteVisits?.(member, call, outcome);
      if (!waiting.isHeldBack(member, request, outcome)) {
        if (call.isCancellable) cancellable.remove(call);
        call.settle(outcome);
      }
      if (call.door === 'troupe') return;
      // One that still works on other calls may be deaf, and they have deadlines of their own.
      if (!outcome.ok && outcome.failure.code === 'timeout' && member.lane.inFlight === 0) member.probe?.();
      tally(member, request, outcome);
    },
    placed,
    cancel: cancellable.cancel,
    isInFlight: cancellable.has,
    /** Nobody's word can help the calls that wait for this server any more. */
    sendAway: waiting.sendAway,
  };
}
