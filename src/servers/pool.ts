// The processes among which the calls of one tenant of an interactive server are spread, so that each asks alone: a process
// has one such call at a time, and the others wait together, first come, first served, for whichever gets free. The calls of a
// session that is at home in a process wait for that one, and run there side by side: whoever is asked is the same host.

import type { Told } from '../../machines/fleet.ts';
import type { Call } from '../calls/call.ts';
import type { Lane } from '../calls/lane.ts';
import type { Gate } from '../calls/outcomes.ts';
import { canAsk, type InFlight } from '../calls/request.ts';
import { sentence } from '../protocol/failures.ts';
import type { Member, MemberPool } from './member.ts';
import { sessionListener } from './subscriptions.ts';

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
      this.#rehouse();
      while (this.#placeNext());
      if (this.#waiting.queued > 0) this.#grow();
    } finally {
      this.#isPumping = false;
    }
  }

  homeOf(session: string): Member {
    const home = this.#houseOf(session, true) ?? this.#roomiest();
    this.#first.homes.give(session, home);
    return home;
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
    for (const [home, holders] of this.#first.homes.all())
      for (const holder of holders) this.#move(holder, home, this.#first);
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

  /** A call that has to wait for its own process does not hold up those behind it, but comes before them there. */
  #placeNext(): boolean {
    const free = this.#free();
    const promised = new Set<Member>();
    for (const request of this.#waiting.waiting()) {
      const home = this.#houseOf(request.call.holder, request.call.isBound);
      const member = home
        ? this.#mayEnter(home, request.call, promised.has(home)) && home
        : this.#choose(request, promised.size > 0 ? free.filter((each) => !promised.has(each)) : free);
      if (member) return this.#place(request, member);
      if (home) promised.add(home);
      else if (this.#first.homes.isEmpty) return false; // those behind it would have no better luck
    }
    return false;
  }

  #place(request: InFlight, member: Member): boolean {
    const { holder, isBound } = request.call;
    if (!this.#waiting.letGo(request)) return false;
    if (holder !== undefined && isBound) this.#first.homes.give(holder, member);
    this.#remember(request.call, member);
    member.lane.admit(request);
    return true;
  }

  /** The one that knows the request, or served its holder last; else any without abandoned calls that could be mistaken for it. */
  #choose(request: InFlight, free: readonly Member[]): Member | undefined {
    const { call } = request;
    const last = this.#knowing.get(request) ?? this.#lastOf.get(call.holder ?? '');
    const isClean = (member: Member) =>
      isOwn(member, call) && member.lane.abandoned().every((by) => by.holder === call.holder);
    const isPlain = (member: Member) => isClean(member) && this.#first.homes.countAt(member) === 0;
    return (
      free.find((each) => each === last && isClean(each)) ??
      free.find(isPlain) ??
      free.find(isClean) ??
      free.find((each) => isOwn(each, call))
    );
  }

  // ── Sessions that are at home in a process ─────────────────────────────────

  /** The process that the calls of a holder wait for: where it is at home, or was served last if it has just become bound. */
  #houseOf(holder: string | undefined, isBound: boolean | undefined): Member | undefined {
    const home = this.#first.homes.of(holder);
    if (home || !isBound || holder === undefined) return home;
    const last = this.#lastOf.get(holder);
    return last && this.#isFit(last) ? last : undefined;
  }

  /**
   * Beside calls of its own, and not before the call of another that waits for the same process; unless one of its own waits
   * for an answer there, which may depend on this very call.
   */
  #mayEnter(home: Member, call: Call, isPromised: boolean): boolean {
    const { lane } = home;
    const { holder } = call;
    if (!lane.canSend() || lane.mayBeAsked(holder) || !isOwn(home, call)) return false;
    return !isPromised || lane.asking().some(({ holds, call: own }) => holds > 0 && own.holder === holder);
  }

  /** A process that can take calls, or will before long. */
  #isFit(member: Member): boolean {
    const { gate, isOut } = member.lane;
    return gate.mode !== 'refuse' && !isOut && this.processes().includes(member);
  }

  /** The one with the least to do for others; one more is started rather than shared. */
  #roomiest(except?: Member): Member {
    const loadOf = (member: Member): number => this.#first.homes.countAt(member) + (member.lane.mayBeAsked() ? 1 : 0);
    const [best = this.#first] = this.processes()
      .filter((member) => member !== except && this.#isFit(member))
      .sort((one, other) => loadOf(one) - loadOf(other));
    const mayGrow = this.#isFit(best) && this.processes().length < this.#first.config.settings.pool;
    return (loadOf(best) > 0 && mayGrow && this.#options.further()) || best;
  }

  /** What a process knew is gone with it, or out of reach: its sessions move to one that can be reached, if there is any. */
  #rehouse(): void {
    const { homes } = this.#first;
    if (homes.isEmpty) return;
    for (const [home, holders] of homes.all()) {
      if (this.#isFit(home) || !this.processes().some((each) => this.#isFit(each))) continue;
      for (const holder of holders) this.#move(holder, home, this.#roomiest(home));
    }
  }

  #move(session: string, from: Member, to: Member): void {
    if (from === to) return;
    const listener = sessionListener(session);
    this.#first.homes.give(session, to);
    for (const uri of from.subscriptions.heldBy(listener)) {
      const told = [
        from.subscriptions.remove(uri, listener),
        to.subscriptions.add(uri, listener, Number.POSITIVE_INFINITY),
      ];
      for (const each of told)
        Promise.resolve(each).catch((error) => to.logger.warn(`${uri.slice(0, 200)}: ${sentence(error)}`));
    }
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
    const queued = this.#waiting.queued - this.#wakeHomes();
    if (queued === 0) return;
    const coming = this.processes().filter(({ lane }) => lane.gate.mode === 'hold');
    for (const member of coming.slice(0, queued)) if (member.state !== 'opening') tell(member, { type: 'wanted' });
    let missing = queued - coming.length;
    while (missing > 0 && this.processes().length < this.#first.config.settings.pool && further()) missing--;
    // A process that is free and was not chosen may still be busy with another principal's call; a new process is not.
    const stale = missing === queued ? this.#free().at(-1) : undefined;
    if (stale) tell(stale, { type: 'restart' });
  }

  /** How many calls wait for a process of their own, which is woken, or started anew if it may still work for a stranger. */
  #wakeHomes(): number {
    if (this.#first.homes.isEmpty) return 0;
    const missed = new Map<Member, boolean>();
    let count = 0;
    for (const { call } of this.#waiting.waiting()) {
      const home = this.#houseOf(call.holder, call.isBound);
      if (!home) continue;
      count++;
      missed.set(home, missed.get(home) === true || !isOwn(home, call));
    }
    for (const [home, isStrange] of missed) {
      if (home.lane.gate.mode === 'hold' && home.state !== 'opening') this.#options.tell(home, { type: 'wanted' });
      else if (isStrange && home.lane.canSend() && !home.lane.mayBeAsked())
        this.#options.tell(home, { type: 'restart' });
    }
    return count;
  }

  #shrink(): void {
    if (this.processes().length <= this.#first.config.settings.pool && !this.#options.isCrowded()) return;
    const idle = this.#others().filter(({ lane }) => lane.inFlight === 0);
    const spare = idle.findLast((each) => this.#first.homes.countAt(each) === 0) ?? idle.at(-1);
    if (spare) this.#dismiss(spare);
  }

  #dismiss(member: Member): void {
    this.#dismissed.add(member);
    this.#options.remove(member);
  }
}

/** Whatever it may still be working on, though nobody waits for it, is of the same principal. */
const isOwn = ({ lane }: Pick<Member, 'lane'>, { principal }: Call): boolean =>
  lane.abandoned().every((by) => by.principal === principal);
