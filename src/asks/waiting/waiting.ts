// Calls that wait for somebody's word: for an approval before they are sent, or, once their server has said that an address
// must be visited first, before they are sent once more. Each goes on or ends, exactly once.

import type { Call, Outcome } from '../../calls/call.ts';
import type { Cancellable } from '../../calls/cancellable.ts';
import { now } from '../../calls/deadlines.ts';
import { outcomes } from '../../calls/outcomes.ts';
import { createParked, type Stay } from '../../calls/parked.ts';
import { type InFlight, newRequest } from '../../calls/request.ts';
import { type Delivery, failureOf, sentence } from '../../protocol/failures.ts';
import type { Member } from '../../servers/member.ts';
import type { AskOutcome, Question, Subject } from '../ask.ts';
import { type ApprovalsOptions, createApprovals, type Need } from './approvals.ts';
import { approvalOf, notApproved } from './consent.ts';
import { askAll, requiredOf } from './required.ts';

/** Opens an ask about a call that waits; told once how it ended. Returns how to withdraw it. */
export type OpenAsk = (
  question: Question,
  subject: Subject,
  member: Member,
  onEnded: (outcome: AskOutcome, by: string) => void,
) => () => void;

export type WaitingOptions = ApprovalsOptions & {
  readonly cancellable: Cancellable;
  readonly openAsk: OpenAsk;
  /** The process that a call goes to now; throws when there is no room for one. */
  readonly memberFor: (call: Call) => Member | undefined;
  readonly isThere: (member: Member) => boolean;
  /** Gives it to the lane, which settles it. */
  readonly dispatch: (member: Member, call: Call) => InFlight | undefined;
  /** Counts and records a call that ended without an answer of its server. */
  readonly record: (member: Member, request: InFlight, outcome: Outcome) => void;
};

/** A call whose approval is good for all of its kind. */
type Once = { readonly call: Call; readonly fingerprint: string; readonly pass: () => void };

const UNSENT = '0';
/** Node fires a longer timer at once; a task may have more time than that. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createWaiting(options: WaitingOptions) {
  const { memberFor, isThere, dispatch, record } = options;
  const parked = createParked(options.cancellable);
  const approvals = createApprovals(options);
  const retried = new WeakSet<Call>();
  const onces = new Set<Once>();

  /** What was approved and sent in an earlier life is followed, and not sent again. */
  const needOf = (member: Member, call: Call) => (call.upstream === undefined ? approvals.needed(member, call) : 'no');

  /** False when the call may be sent at once. */
  function mustWait(member: Member, call: Call): boolean {
    const need = needOf(member, call);
    if (need === 'no') return false;
    const { settings } = member.config;
    const request = newRequest(call, UNSENT, settings);
    const isFull = parked.count(call.server) >= settings.maxQueued;
    if (isFull) end(member, request, outcomes(member.server).busy(settings.maxQueued));
    else if (need === 'ask') ask(member, request);
    else untilDecided(member, request, need);
    return true;
  }

  /** Nobody is asked yet, so its patience runs. */
  function untilDecided(member: Member, request: InFlight, need: Promise<Need>): void {
    const leave = parked.park(stayOf(member, request, () => clearTimeout(timer)));
    const timer = setTimeout(
      () => {
        if (leave()) end(member, request, outcomes(member.server).timeout(request, gateOf(member), 'not sent'));
      },
      Math.min(request.timeoutMs, LONGEST_TIMER_MS),
    );
    const decided = (then: () => void): void => {
      clearTimeout(timer);
      if (leave()) then();
    };
    const send = (): void => goOn(member, request, request.deadline - now());
    need.then(
      (found) => decided(found === 'ask' ? () => ask(member, request) : send),
      (error) => decided(() => fail(member, request, error)),
    );
  }

  function ask(member: Member, request: InFlight): void {
    const { call, latestDeadline, timeoutMs, startedAt } = request;
    const question = approvalOf(call);
    if ('code' in question) return end(member, request, { ok: false, failure: question });
    const fingerprint = approvals.onceOf(member, call);
    let withdraw = (): void => {};
    const leave = parked.park(stayOf(member, request, () => withdraw()));
    const pass = (): void => {
      if (leave()) goOn(member, request, timeoutMs);
      withdraw();
    };
    const once: Once = { call, fingerprint, pass };
    if (fingerprint) onces.add(once);
    withdraw = open(question, { call, latestDeadline }, member, (outcome, by) => {
      onces.delete(once);
      if (!leave()) return;
      if (outcome !== 'approved')
        return end(member, request, { ok: false, failure: notApproved(call, outcome, by, now() - startedAt) });
      if (fingerprint) approvals.approved(member, call, fingerprint);
      goOn(member, request, timeoutMs);
      for (const other of [...onces]) if (isSame(other, once)) other.pass();
    });
  }

  /**
   * True when the caller is not told yet: its server wants addresses visited first, and then the call is made again, once.
   * Nothing that reached a server is sent again (P3) but here, where the server itself says that it has done nothing, and the
   * specification allows it. Both attempts are recorded: the first as it ended, rejected, the second as a row of its own.
   */
  function isHeldBack(member: Member, request: InFlight, outcome: Outcome): boolean {
    const { call, latestDeadline, timeoutMs } = request;
    const questions = outcome.ok || retried.has(call) ? undefined : requiredOf(call, outcome);
    if (!questions) return false;
    let withdraw = (): void => {};
    const giveUp = (): void => {
      withdraw();
      call.settle(outcome);
    };
    const leave = parked.park({ ...stayOf(member, request, () => withdraw(), 'failed'), onGone: giveUp });
    const openOne = (question: Question, onEnded: (outcome: AskOutcome) => void) =>
      open(question, { call, latestDeadline }, member, onEnded);
    withdraw = askAll(questions, openOne, (isDone) => {
      if (!leave()) return;
      if (isDone) goOn(member, request, timeoutMs, true);
      else call.settle(outcome);
    });
    return true;
  }

  /** Whoever cannot ask must not keep a call for ever. */
  const open: OpenAsk = (question, subject, member, onEnded) => {
    try {
      return options.openAsk(question, subject, member, onEnded);
    } catch (error) {
      member.logger.error(sentence(error));
      onEnded('withdrawn', '');
      return () => {};
    }
  };

  /** With what is left of its time: what a call may take at all counts from its start. */
  function goOn(member: Member, request: InFlight, timeoutMs: number, isRetry = false): void {
    const { call, latestDeadline } = request;
    const next = { ...call, timeoutMs: Math.max(1, Math.min(timeoutMs, latestDeadline - now())) };
    if (isRetry) retried.add(next);
    let process: Member | undefined;
    try {
      // The process that sent it back knows what was done at the address.
      process = isRetry && isThere(member) ? member : memberFor(call);
    } catch (error) {
      return fail(member, request, error);
    }
    if (!process) return stayOf(member, request, () => {}).onGone('it was removed');
    const sent = dispatch(process, next);
    if (sent) Object.assign(sent, { latestDeadline, deadline: Math.min(sent.deadline, latestDeadline) });
  }

  const stayOf = (member: Member, request: InFlight, stop: () => void, delivery: Delivery = 'not sent'): Stay => {
    const endWith = (how: 'cancelled' | 'gone') => (why: string) => {
      stop();
      end(member, request, outcomes(member.server)[how](Object.assign(request, { why }), gateOf(member), delivery));
    };
    return { call: request.call, onCancel: endWith('cancelled'), onGone: endWith('gone') };
  };

  const fail = (member: Member, request: InFlight, error: unknown): void => {
    const failure = failureOf(error, (fault) => member.logger.error(sentence(fault)));
    end(member, request, { ok: false, failure: { ...failure, server: member.server } });
  };

  function end(member: Member, request: InFlight, outcome: Outcome): void {
    request.call.settle(outcome);
    record(member, request, outcome);
  }

  /** Whether it would be sent without a word of anybody. */
  const isClear = (member: Member, call: Call): boolean => needOf(member, call) === 'no';

  return { mustWait, isClear, isHeldBack, sendAway: parked.sendAway };
}

const gateOf = ({ state, why }: Member) => ({ mode: 'refuse', state, why }) as const;

const isSame = (a: Once, b: Once): boolean =>
  a.fingerprint === b.fingerprint &&
  a.call.principal === b.call.principal &&
  a.call.server === b.call.server &&
  a.call.name === b.call.name;
