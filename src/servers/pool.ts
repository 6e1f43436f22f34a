// The processes among which the calls of one tenant of an interactive server are spread, so that each asks alone: a process
// has one such call at a time, and the others wait together, first come, first served, for whichever gets free.

import type { Told } from '../../machines/fleet.ts';
import type { Call } from '../calls/call.ts';
import type { Lane } from '../calls/lane.ts';
import type { Gate } from '../calls/outcomes.ts';
import { canAsk, type InFlight } from '../calls/request.ts';
import type { Member, MemberPool } from './member.ts';

export type PoolOptions = {
  readonly first: Member;
  /** The lane in which calls wait for any of the processes; it has no server of its own. */
  readonly waiting: Lane;
  /** The first one, then the others. */
  readonly processes: () => readonly Member[];
  /** Starts one more, if there is room. */
  readonly further: () => Member | undefined;
  /** There are more processes than there may be. */
  readonly isCrowded: () => boolean;
  readonly remove: (member: Member) => void;
  readonly tell: (member: Member, command: Told) => void;
};

const MAX_HOLDERS = 1_000;
const ASKING = 'all its processes wait for answers, see troupe inbox';

export class Pool implements MemberPool {
  readonly #options: PoolOptions;
  readonly #first: Member;
  readonly #waiting: Lane;
  /** The process that served a holder last. */
  readonly #lastOf = new Map<string, Member>();
  /** The process that knows something of a request, such as the address that was to be visited for it. */
  readonly #knowing = new WeakMap<InFlight, Member>();
  readonly #dismissed = new WeakSet<Member>();
  #isPumping = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#first = options.first;
    this.#waiting = options.waiting;
  }

  /** `from` is the process that the request came back from, or the first one. */
  admit(request: InFlight, from: Member): void {
    if (from !== this.#first) this.#knowing.set(request, from);
    this.#waiting.admit(request);
    this.pump();
  }

  /** After any change: calls that wait are sent, refused, or get one more process. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#regate();
      this.#shrink();
      while (this.#placeNext());
      if (this.#waiting.queued > 0) this.#grow();
    } finally {
      this.#isPumping = false;
    }
  }

  processes(): Member[] {
    return this.#options.processes().filter((member) => !this.#dismissed.has(member));
  }

  /** Takes the calls that have been waiting in front of the first process alone. */
  gather(): void {
    this.#regate();
    const { lane } = this.#first;
    const queued = Array.from({ length: lane.queued }, () => lane.letGo());
    for (const request of queued) if (request) (canAsk(request.call) ? this.#waiting : lane).admit(request);
    this.pump();
  }

  retune(): void {
    this.#waiting.retune(this.#first.config.settings);
    this.pump();
  }

  /** The first process goes on alone, until more are needed. */
  alone(): void {
    for (const member of this.#others()) this.#dismiss(member);
  }

  close(): void {
    this.alone();
    for (let request = this.#waiting.letGo(); request; request = this.#waiting.letGo()) this.#first.lane.admit(request);
  }

  get queued(): number {
    return this.#waiting.queued;
  }

  #others(): Member[] {
    return this.processes().filter((member) => member !== this.#first);
  }

  #free(): Member[] {
    return this.processes().filter(({ lane }) => lane.canSend() && !lane.mayBeAsked());
  }

  /** The pool is full, and each of its processes waits for an answer to a question. */
  #isAsking(): boolean {
    const processes = this.processes();
    return (
      processes.length >= this.#first.config.settings.pool &&
      processes.every(({ lane }) => lane.asking().some(({ holds }) => holds > 0))
    );
  }

  /** Calls wait for as long as any process may take them; when none may, they are refused as the first one refuses. */
  #regate(): void {
    const able = this.processes().find(({ lane }) => lane.gate.mode !== 'refuse')?.lane.gate;
    const next: Gate = able
      ? { ...able, mode: 'hold', state: this.#isAsking() ? ASKING : able.state }
      : this.#first.lane.gate;
    const { mode, state, why } = this.#waiting.gate;
    if (next.mode !== mode || next.state !== state || next.why !== why) this.#waiting.setGate(next);
  }

  #placeNext(): boolean {
    const next = this.#waiting.first;
    const member = next && this.#choose(next);
    if (!next || !member || !this.#waiting.letGo()) return false;
    this.#remember(next.call, member);
    member.lane.admit(next);
    return true;
  }

  /** The one that knows the request, or served its holder last; else any without abandoned calls that could be mistaken for it. */
  #choose(request: InFlight): Member | undefined {
    const { call } = request;
    const free = this.#free();
    const last = this.#knowing.get(request) ?? this.#lastOf.get(call.holder ?? '');
    const isOwn = ({ lane }: Member) => lane.abandoned().every(({ principal }) => principal === call.principal);
    const isClean = (member: Member) =>
      isOwn(member) && member.lane.abandoned().every((by) => by.holder === call.holder);
    return free.find((each) => each === last && isClean(each)) ?? free.find(isClean) ?? free.find(isOwn);
  }

  #remember({ holder }: Call, member: Member): void {
    if (holder === undefined) return;
    this.#lastOf.delete(holder);
    this.#lastOf.set(holder, member);
    const [oldest] = this.#lastOf.keys();
    if (this.#lastOf.size > MAX_HOLDERS && oldest !== undefined) this.#lastOf.delete(oldest);
  }

  /** A server that does not start is not multiplied. */
  #grow(): void {
    const { tell, further } = this.#options;
    if (this.#first.lane.gate.mode === 'refuse') return;
    const queued = this.#waiting.queued;
    const coming = this.processes().filter(({ lane }) => lane.gate.mode === 'hold');
    for (const member of coming.slice(0, queued)) if (member.state !== 'opening') tell(member, { type: 'wanted' });
    let missing = queued - coming.length;
    while (missing > 0 && this.processes().length < this.#first.config.settings.pool && further()) missing--;
    // A process that is free and was not chosen may still be busy with another principal's call; a new process is not.
    const stale = missing === queued ? this.#free().at(-1) : undefined;
    if (stale) tell(stale, { type: 'restart' });
  }

  #shrink(): void {
    if (this.processes().length <= this.#first.config.settings.pool && !this.#options.isCrowded()) return;
    const spare = this.#others().findLast(({ lane }) => lane.inFlight === 0);
    if (spare) this.#dismiss(spare);
  }

  #dismiss(member: Member): void {
    this.#dismissed.add(member);
    this.#options.remove(member);
  }
}
