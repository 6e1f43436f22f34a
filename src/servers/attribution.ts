// Which call a log line or a question of a server belongs to: the call whose task it names or on whose own stream it came, or
// the only call that the server can be working on. Never a guess between two callers.

import type { Lane } from '../calls/lane.ts';
import type { InFlight } from '../calls/request.ts';
import type { Member } from './member.ts';

/** The call that a log line of the server belongs to, if that is certain. */
export function requestBehind(lane: Lane, origin: string | undefined): InFlight | undefined {
  if (origin !== undefined) return lane.sent(origin);
  const [only, another] = lane.inProgress();
  return another ? undefined : only;
}

/** Who may read a log line: the caller of the one call, the one session that all calls belong to, every host, or no host. */
export type Audience =
  | { readonly to: 'caller' | 'everyone' | 'nobody' }
  | { readonly to: 'session'; readonly session: string };

/** For that long after an answer a log line may still be about the call. */
const AFTERMATH_MS = 1_000;

/** Never a guess between principals; between the sessions of one principal, the only call in flight is taken for the cause. */
export function audienceOf({ lane, config }: Member, origin: string | undefined): Audience {
  if (origin !== undefined) return { to: requestBehind(lane, origin) ? 'caller' : 'nobody' };
  const [working, recent] = [lane.inProgress().map(({ call }) => call), lane.recent(AFTERMATH_MS)];
  if (new Set([...working, ...recent].map(({ principal }) => principal)).size > 1) return { to: 'nobody' };
  if (working.length === 1) return { to: 'caller' };
  const holders = new Set((working.length > 0 ? working : recent).map(({ holder }) => holder));
  if (holders.size === 0) return { to: config.settings.share === 'all' ? 'nobody' : 'everyone' };
  const [session] = holders;
  return holders.size === 1 && session !== undefined ? { to: 'session', session } : { to: 'nobody' };
}

/** Whose question it is: that of one call, or that of a principal whose calls cannot be told apart, or who has none. */
export type Found = { readonly isOne: boolean; readonly principal: string; readonly requests: readonly InFlight[] };
/** `wait`: whose question it is may be known when some of the calls have ended. */
export type Verdict = Found | 'wait' | 'nobody';

type Tell = (found: Found | undefined) => void;
/** The open questions of one process. While there are any it gets no call that may ask, so all have the same candidates. */
type Undecided = { readonly questions: Set<{ readonly tell: Tell }>; readonly release: () => void };

export type Attribution = ReturnType<typeof createAttribution>;

export function createAttribution() {
  const undecided = new WeakMap<Lane, Undecided>();

  /** Until all questions are decided the deadlines of the calls rest. */
  function open(member: Member): Undecided {
    const { lane } = member;
    const held = [lane.pause()];
    for (const each of lane.asking())
      held.push(
        lane.suspend(each),
        lane.whenEnded(each, () => look(member)),
      );
    const opened: Undecided = { questions: new Set(), release: () => held.forEach((letGo) => void letGo()) };
    undecided.set(lane, opened);
    return opened;
  }

  /** After the end of a call more may be known; and if each call left may wait for an answer, one question must go. */
  function look(member: Member): void {
    const { lane } = member;
    const { questions } = undecided.get(lane) ?? { questions: new Set() };
    for (const question of [...questions]) {
      const calls = lane.asking();
      const verdict = calls.length > 0 ? among(member, calls) : 'nobody';
      if (verdict === 'wait') break;
      close(lane, question, verdict);
    }
    const newest = [...questions].at(-1);
    if (newest && isStuck(lane, questions.size)) close(lane, newest, 'nobody');
  }

  /** The verdict is told before the calls are released: the ask that it opens suspends its call in our stead. */
  function close(lane: Lane, question: { readonly tell: Tell }, verdict?: Found | 'nobody'): void {
    const opened = undecided.get(lane);
    if (!opened?.questions.delete(question)) return;
    if (opened.questions.size === 0) undecided.delete(lane);
    if (verdict) question.tell(verdict === 'nobody' ? undefined : verdict);
    if (opened.questions.size === 0) opened.release();
  }

  return {
    /** Tells once whose question it is, now or later; undefined when it is no call's. Returns how to withdraw an open one. */
    settle(member: Member, origin: string | undefined, tell: Tell): () => void {
      if (origin === undefined) member.sawAsking?.();
      const { lane } = member;
      const verdict = attribute(member, origin);
      const others = undecided.get(lane);
      if (verdict !== 'wait' || isStuck(lane, 1 + (others?.questions.size ?? 0))) {
        tell(typeof verdict === 'string' ? undefined : verdict);
        return () => {};
      }
      const question = { tell };
      (others ?? open(member)).questions.add(question);
      return () => close(lane, question);
    },
  };
}

/** Each call in flight may be waiting for the answer to one of the questions, so that no call would ever end. */
const isStuck = (lane: Lane, questions: number): boolean => questions >= lane.asking().length;

/** A question belongs to the call that `origin` names; without an origin, to the principal who alone can have caused it. */
export function attribute(member: Member, origin: string | undefined): Verdict {
  const { lane, onBehalfOf: principal, config } = member;
  if (origin !== undefined) {
    const request = lane.sent(origin);
    return request && request.call.door !== 'troupe' ? one(request) : 'nobody';
  }
  const candidates = lane.asking();
  if (candidates.length > 0) return among(member, candidates);
  // An abandoned call may still be asking; and a process that all principals share asks on behalf of none of them.
  if (lane.abandoned().length > 0 || config.settings.share === 'all') return 'nobody';
  return { isOne: false, principal, requests: [] };
}

function among({ lane }: Member, candidates: readonly InFlight[]): Verdict {
  const calls = candidates.map(({ call }) => call);
  const [principal = '', stranger] = new Set([...calls, ...lane.abandoned()].map((each) => each.principal));
  if (stranger !== undefined) return new Set(calls.map((each) => each.principal)).size > 1 ? 'wait' : 'nobody';
  // Calls that this principal abandoned do not count: the server was told to stop, and the same person would be asked.
  const [session, another] = new Set(calls.map(({ holder }) => holder));
  const isOne = calls.length === 1 || (session !== undefined && another === undefined);
  return isOne ? one(leastAsked(candidates)) : { isOne, principal, requests: candidates };
}

const one = (request: InFlight): Found => ({ isOne: true, principal: request.call.principal, requests: [request] });

/** All calls of a session have the same host to ask; the oldest without an open question is the likeliest cause. */
const leastAsked = (requests: readonly InFlight[]): InFlight =>
  requests.reduce((least, each) => (each.holds < least.holds ? each : least));
