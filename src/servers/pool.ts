// The processes among which the calls of one tenant of an interactive server are spread, so that each asks alone: a process
// has one such call at a time, and the others wait together, first come, first served, for whichever gets free.

import type { Told } from '../../machines/fleet.ts';
import type { Call } from '../calls/call.ts';
import type { Lane } from '../calls/lane.ts';
import { canAsk, type InFlight } from '../calls/request.ts';
import type { Member } from './member.ts';

export type PoolOptions = {
  readonly first: Member;
  /** Where they wait; it has no server of its own. */
  readonly waiting: Lane;
  /** The first one, then the others. */
  readonly processes: () => readonly Member[];
  /** Starts one more, if there is room. */
  readonly further: () => Member | undefined;
  /** There are more processes than there may be. */
  readonly isCrowded: () => boolean;
  readonly remove: (member: Member) => void;
  readonly tell: (member: Member, command: Told) => void;
  /** A request is in this lane from now on. */
  readonly onPlaced: (lane: Lane, request: InFlight) => void;
};
export type Pool = ReturnType<typeof createPool>;

const MAX_HOLDERS = 1_000;
const ASKING = 'all its processes wait for answers, see troupe inbox';

export function createPool(options: PoolOptions) {
  const { first, waiting, tell, onPlaced } = options;
  const lastOf = new Map<string, Member>();
  const wished = new WeakMap<Call, Member>();
  const leaving = new WeakSet<Member>();
  let isPumping = false;

  const processes = () => options.processes().filter((member) => !leaving.has(member));
  const others = () => processes().filter((member) => member !== first);
  const free = () => processes().filter(({ lane }) => lane.canSend() && !lane.mayBeAsked());

  /** Whatever may have changed, all that follows from it: who waits is sent, refused, or gets one more process. */
  function pump(): void {
    if (isPumping) return;
    isPumping = true;
    try {
      regate();
      shrink();
      while (place());
      if (waiting.queued > 0) grow();
    } finally {
      isPumping = false;
    }
  }

  /** Every process that there may be waits for somebody's answer. */
  const isAsking = (): boolean =>
    processes().length >= first.config.settings.pool &&
    processes().every(({ lane }) => lane.asking().some(({ holds }) => holds > 0));

  /** Calls wait for as long as any process may take them, and hear what the first one says when none may. */
  function regate(): void {
    const able = processes().find(({ lane }) => lane.gate.mode !== 'refuse');
    const { mode, state, why } = able
      ? { mode: 'hold' as const, state: isAsking() ? ASKING : able.lane.gate.state, why: '' }
      : first.lane.gate;
    const { gate } = waiting;
    if (gate.mode !== mode || gate.state !== state || gate.why !== why) waiting.setGate({ mode, state, why });
  }

  function place(): boolean {
    const next = waiting.first();
    const member = next && choose(next.call);
    const request = member && waiting.letGo();
    if (!request) return false;
    remember(request.call, member);
    hand(member.lane, request);
    return true;
  }

  /** The one that is wished for, or its holder used last; the first; any. Who may still work on another's abandoned call would ask for both. */
  function choose(call: Call): Member | undefined {
    const ready = free();
    const last = wished.get(call) ?? lastOf.get(call.holder ?? '');
    const isOwn = ({ lane }: Member) => lane.abandoned().every(({ principal }) => principal === call.principal);
    const isClean = (member: Member) =>
      isOwn(member) && member.lane.abandoned().every((by) => by.holder === call.holder);
    return ready.find((each) => each === last && isClean(each)) ?? ready.find(isClean) ?? ready.find(isOwn);
  }

  function remember({ holder }: Call, member: Member): void {
    if (holder === undefined) return;
    lastOf.delete(holder);
    lastOf.set(holder, member);
    const [oldest] = lastOf.keys();
    if (lastOf.size > MAX_HOLDERS && oldest !== undefined) lastOf.delete(oldest);
  }

  function hand(lane: Lane, request: InFlight): void {
    if (lane.adopt(request)) onPlaced(lane, request);
  }

  /** A server that does not start is not multiplied. */
  function grow(): void {
    if (first.lane.gate.mode === 'refuse') return;
    const coming = processes().filter(({ lane }) => lane.gate.mode === 'hold');
    for (const member of coming.slice(0, waiting.queued))
      if (member.state !== 'opening') tell(member, { type: 'wanted' });
    let missing = waiting.queued - coming.length;
    while (missing > 0 && processes().length < first.config.settings.pool && options.further()) missing--;
    // One that is free and was not chosen may still be busy with a stranger's call; a new process knows nothing of it.
    const stale = missing === waiting.queued ? free().at(-1) : undefined;
    if (stale) tell(stale, { type: 'restart' });
  }

  function shrink(): void {
    if (processes().length <= first.config.settings.pool && !options.isCrowded()) return;
    const spare = others().findLast(({ lane }) => lane.inFlight === 0);
    if (spare) dismiss(spare);
  }

  function dismiss(member: Member): void {
    leaving.add(member);
    options.remove(member);
  }

  return {
    pump,
    processes,
    /** `wish` is the process that knows something of this call, if it is not just the first. */
    submit(call: Call, wish: Member): InFlight | undefined {
      if (wish !== first) wished.set(call, wish);
      const request = waiting.submit(call);
      if (request) onPlaced(waiting, request);
      pump();
      return request;
    },
    /** Takes what has been waiting in front of the first process alone. */
    gather(): void {
      regate();
      const queued = Array.from({ length: first.lane.queued }, () => first.lane.letGo());
      for (const request of queued) if (request) hand(canAsk(request.call) ? waiting : first.lane, request);
      pump();
    },
    retune(): void {
      waiting.retune(first.config.settings);
      pump();
    },
    /** The first process goes on alone, until more are needed. */
    alone(): void {
      for (const member of others()) dismiss(member);
    },
    close(): void {
      this.alone();
      for (let request = waiting.letGo(); request; request = waiting.letGo()) hand(first.lane, request);
    },
    get queued() {
      return waiting.queued;
    },
  };
}
