// Whose word a call needs, and how it is asked for: an approval before it is sent, or, once its server has refused it until an
// address was visited (-32042), the word that this was done. The chart of the request owns the wait; here are its questions.

import type { Call, Outcome } from '../../calls/call.ts';
import type { Tell } from '../../calls/permits.ts';
import { asksUntil, type InFlight } from '../../calls/request.ts';
import { sentence } from '../../protocol/failures.ts';
import type { Permissions } from '../../servers/fleet.ts';
import type { Member } from '../../servers/member.ts';
import type { AskOutcome, Question, Subject } from '../ask.ts';
import { type ApprovalsOptions, createApprovals } from './approvals.ts';
import { approvalOf, notApproved } from './consent.ts';
import { requiredBy } from './visits.ts';

/** Opens an ask about a call that waits; told once how it ended, and how it could be answered. Returns how to withdraw it. */
export type OpenAsk = (
  question: Question,
  subject: Subject,
  member: Member,
  onEnded: (outcome: AskOutcome, by: string, command: string) => void,
) => () => void;

export type PermissionsOptions = ApprovalsOptions & {
  readonly openAsk: OpenAsk;
  readonly noteVisits: (member: Member, call: Call, outcome: Outcome) => void;
  /** The server is wanted: its lists have to be read. */
  readonly wake: (member: Member) => void;
};

/** The calls to one server of which it is not known yet whether somebody must be asked, and the end of that wait. */
type Undecided = { readonly waiting: Map<Call, Tell>; stop: () => void };
/** A call that somebody is asked about, and whose approval would be good for all of its kind. */
type Once = { readonly call: Call; readonly fingerprint: string; readonly tell: Tell };

export function createPermissions(options: PermissionsOptions): Permissions {
  const { catalog, world, noteVisits, wake } = options;
  const approvals = createApprovals(options);
  const undecided = new Map<Member, Undecided>();
  const onces = new Set<Once>();

  /** The server has another state, has said what it offers, or has had its time to. */
  function review(member: Member): void {
    const found = undecided.get(member);
    if (!found) return;
    if (!approvals.isListed(member)) {
      found.stop();
      if (member.state === 'ready') found.stop = world.after(approvals.listMs(member), () => review(member));
      return;
    }
    for (const [call, tell] of [...found.waiting]) tell(approvals.decide(member, call));
  }

  catalog.watch((server) => {
    for (const member of undecided.keys()) if (member.name === server) review(member);
  });

  function awaitList(member: Member, request: InFlight, tell: Tell): void {
    const found = undecided.get(member) ?? { waiting: new Map(), stop: () => {} };
    undecided.set(member, found);
    found.waiting.set(request.call, tell);
    request.withdraw = () => {
      found.waiting.delete(request.call);
      if (found.waiting.size > 0) return;
      found.stop();
      undecided.delete(member);
    };
    wake(member);
    review(member);
  }

  function askApproval(member: Member, request: InFlight, tell: Tell): void {
    const { call, startedAt } = request;
    const latestDeadline = asksUntil(request);
    const question = approvalOf(call);
    if ('code' in question) return void tell('denied', question);
    const fingerprint = approvals.onceOf(member, call);
    const once: Once = { call, fingerprint, tell };
    if (fingerprint) onces.add(once);
    const withdraw = open(question, { call, latestDeadline }, member, (outcome, by, command) => {
      onces.delete(once);
      const waitedMs = world.now() - startedAt;
      if (outcome !== 'approved') tell('denied', notApproved(call, { outcome, by, command, waitedMs }));
      else if (fingerprint) void approveAll(member, once);
      else tell('approved');
    });
    withdrawWith(request, 'approving', withdraw);
  }

  /** An approval is kept before anything is sent for it: a daemon that is killed then must not ask again for what ran already. */
  async function approveAll(member: Member, once: Once): Promise<void> {
    await approvals.keep(member, once.call, once.fingerprint);
    once.tell('approved');
    for (const other of [...onces]) if (isSame(other, once)) other.tell('approved');
  }

  /**
   * Nothing that reached a server is sent again (P3) but here, where the server itself says that it has done nothing, and the
   * specification allows it. Both attempts are recorded: the first as it ended, rejected, the second as a row of its own.
   */
  function askVisits(member: Member, request: InFlight, tell: Tell): void {
    const { call, body } = request;
    const latestDeadline = asksUntil(request);
    const questions = requiredBy(call, body) ?? [];
    const openOne: OpenOne = (question, onEnded) => open(question, { call, latestDeadline }, member, onEnded);
    const withdraw = askAll(questions, openOne, (isDone) => void tell(isDone ? 'visited' : 'unvisited'));
    withdrawWith(request, 'visiting', withdraw);
  }

  /** A question that cannot be asked must not keep a call for ever. */
  const open: OpenAsk = (question, subject, member, onEnded) => {
    try {
      return options.openAsk(question, subject, member, onEnded);
    } catch (error) {
      member.logger.error(sentence(error));
      onEnded('withdrawn', '', '');
      return () => {};
    }
  };

  return {
    needOf: approvals.needOf,
    awaitList,
    askApproval,
    wantsVisits: ({ call, body }) => requiredBy(call, body) !== undefined,
    askVisits,
    noteVisits,
    changed: review,
  };
}

/** A question may be answered before the asking is done; then there is nothing left to withdraw later. */
function withdrawWith(request: InFlight, state: 'approving' | 'visiting', withdraw: () => void): void {
  if (request.row.state === state) request.withdraw = withdraw;
  else withdraw();
}

const isSame = (a: Once, b: Once): boolean =>
  a.fingerprint === b.fingerprint &&
  a.call.principal === b.call.principal &&
  a.call.server === b.call.server &&
  a.call.name === b.call.name;

type OpenOne = (question: Question, onEnded: (outcome: AskOutcome) => void) => () => void;

/** Told once whether all was done; the first that was not ends the others. Returns how to withdraw them all. */
function askAll(questions: readonly Question[], open: OpenOne, onDone: (isDone: boolean) => void): () => void {
  const withdrawals = new Set<() => void>();
  let left = questions.length;
  let isOver = false;
  const withdraw = (): void => {
    isOver = true;
    for (const each of [...withdrawals]) each();
  };
  const ended = (outcome: AskOutcome): void => {
    if (isOver || (outcome === 'completed' && --left > 0)) return;
    withdraw();
    onDone(outcome === 'completed');
  };
  for (const question of questions) {
    if (isOver) break;
    let isOpen = true;
    let close = (): void => {};
    close = open(question, (outcome) => {
      isOpen = false;
      withdrawals.delete(close);
      ended(outcome);
    });
    if (isOpen) withdrawals.add(close);
  }
  return withdraw;
}
