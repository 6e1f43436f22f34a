// The requests of one server's process. A lane decides which event a request gets next and carries out what the request's chart
// orders: it is queued until the server can take it, reserved where that is wanted, written once, and answered once.

import { progressFrame, requestFrame } from '../protocol/compose.ts';
import type { Failure } from '../protocol/failures.ts';
import { mayBeCancelled } from '../protocol/methods.ts';
import type { Call, Outcome } from './call.ts';
import { type Caller, Callers } from './callers.ts';
import { answers, type Gate, outcomes } from './outcomes.ts';
import { NO_PERMITS, type Permits, type Tell } from './permits.ts';
import { flushProgress, relayProgress } from './progress.ts';
import { Queue } from './queue.ts';
import {
  canAsk,
  type Effects,
  hasEnded,
  type InFlight,
  isBound,
  type Owner,
  wantsProgress,
  whenEnded,
} from './request.ts';
import type { Requests } from './requests.ts';
import { Transients } from './transients.ts';

export type LaneSettings = {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  /** How long an unsent call waits for a server that restarts; 0 = not at all. */
  readonly holdMs: number;
};

/** The way to the server. `hasRoom` is false while the server does not read what we write. */
export type Peer = {
  /** `id` is the frame's own; the call is for transports that say more of it than the frame, such as HTTP headers. */
  write(frame: Buffer, id: string, call: Call): void;
  cancel(id: string, why: string): void;
  hasRoom(): boolean;
};

export type LaneOptions = {
  readonly server: string;
  readonly settings: LaneSettings;
  readonly requests: Requests;
  /** Why a call must not be sent, asked when it is about to be: only then is it known what the server offers. */
  readonly refusalOf: (call: Call) => Failure | undefined;
  /** Without them every call is clear. */
  readonly permits?: Permits;
  /** Gives an admitted request to the lane that shall have it; without it that is this one. */
  readonly place?: (request: InFlight, how: 'here' | 'anew' | 'back') => void;
  /** `isRecorded`: the outcome is that of the attempt which `onAttempt` was told of. */
  readonly onSettled: (request: InFlight, outcome: Outcome, isRecorded: boolean) => void;
  /** The server has sent it back, and its caller is not told yet, because it may be sent once more. */
  readonly onAttempt?: (request: InFlight, outcome: Outcome) => void;
  /** It is at the server no more. */
  readonly onLeft?: () => void;
  /** Calls wait for the server. */
  readonly onWanted: () => void;
};

/** An ask ends before the call that it is about can wait no longer, and says why better than a deadline. */
const ASK_GRACE_MS = 1_000;
export const createLane = (options: LaneOptions): Lane => new Lane(options);

export class Lane implements Owner {
  readonly effects: Effects;
  readonly whenEnded = whenEnded;
  readonly #options: LaneOptions;
  readonly #requests: Requests;
  readonly #drive: Requests['drive'];
  readonly #permits: Permits;
  readonly #say: ReturnType<typeof outcomes>;
  readonly #callers: Callers;
  readonly #queue = new Queue<InFlight>();
  /** Those that wait until the server has said what it offers. */
  readonly #deferred = new Set<InFlight>();
  readonly #reserving = new Transients<InFlight, InFlight>();
  readonly #sent = new Transients<string, InFlight>();
  #settings: LaneSettings;
  #gate: Gate = { mode: 'refuse', state: 'stopped', why: '' };
  #peer: Peer | undefined;
  #sequence = 0;
  #sentByCallers = 0;
  #pauses = 0;
  #isPumping = false;
  #lastActiveAt: number;
  #onIdle: (() => void) | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#requests = options.requests;
    this.#drive = options.requests.drive;
    this.#settings = options.settings;
    this.#permits = options.permits ?? NO_PERMITS;
    this.#say = outcomes(options.server);
    this.#callers = new Callers(options.requests.world);
    this.#lastActiveAt = options.requests.world.now();
    this.effects = {
      ...this.#waitingEffects(),
      ...this.#sendingEffects(),
      ...answers(
        this.#say,
        () => this.#gate,
        (...end) => this.#finish(...end),
      ),
    };
  }

  // ── Calls come in ──────────────────────────────────────────────────────────

  /** Takes a call; from here on it is answered exactly once. A request that has already ended is not given out. */
  submit(call: Call): InFlight | undefined {
    const request = this.#requests.begin(call, this, this.#settings);
    this.#lastActiveAt = request.startedAt;
    const need = this.#permits.needOf(call);
    if (this.#requests.isTooMuch(call)) this.#refuse(request, this.#say.heavy(this.#requests.bytes));
    else if (need !== 'clear' && this.#requests.parkedAt(call.server) >= this.#settings.maxQueued)
      this.#refuse(request, this.#say.busy(this.#settings.maxQueued));
    else this.#drive(request, need);
    return hasEnded(request) ? undefined : request;
  }

  /** A request of our own, such as `initialize`, which must not wait for the gate that it opens. */
  ask(call: Call): void {
    this.#drive(this.#requests.begin(call, this, this.#settings), this.#peer ? 'dispatch' : 'gone');
  }

  /** Takes a request that is admitted, perhaps from another lane of the same server: it is sent, queued or refused. */
  admit(request: InFlight): void {
    request.owner = this;
    this.#lastActiveAt = this.#requests.world.now();
    // A lane that it comes from may have limited its patience; a lane that is in an outage limits it anew.
    if (request.deadline < patienceOf(request)) request.deadline = patienceOf(request);
    // Also a call that does not wait for a server in an outage is a reason to try it again.
    const isHeld = this.#gate.mode === 'hold';
    if (!this.#takesCalls()) {
      this.#drive(request, 'refuse');
      return isHeld ? this.#options.onWanted() : undefined;
    }
    const mayPass = this.#pauses === 0 ? this.#queue.length === 0 : !canAsk(request.call);
    if (mayPass && this.canSend()) return this.#send(request);
    if (this.#queue.length >= this.#settings.maxQueued)
      return this.#refuse(request, this.#say.busy(this.#queue.length));
    this.#drive(request, 'queue');
    if (isHeld) this.#options.onWanted();
  }

  /** The request that has waited longest. */
  get first(): InFlight | undefined {
    return this.#queue.first;
  }

  /** The requests that wait, in the order in which they came. Not to be changed while it is read. */
  waiting(): Iterable<InFlight> {
    return this.#queue;
  }

  /** Lets a request go that waits here, the one that has waited longest unless told, so that another lane can admit it. */
  letGo(request = this.#queue.first): InFlight | undefined {
    if (request) this.#drive(request, 'move');
    return request;
  }

  cancel(request: InFlight, why: string): void {
    request.why = why;
    this.#drive(request, 'cancel');
  }

  /** Its deadline has come, or the end of the time for which it may wait for a server that restarts. */
  overdue(request: InFlight): void {
    this.#drive(request, request.deadline < patienceOf(request) ? 'refuse' : 'deadline');
  }

  // ── The server speaks ──────────────────────────────────────────────────────

  attach(peer: Peer): void {
    this.#peer = peer;
    this.#callers.forgetAbandoned();
  }

  /** The server is gone: what was sent is lost. Callers hear of it once the gate says what has become of the server. */
  detach(why: string): void {
    this.#peer = undefined;
    const lost = this.#sent.values();
    queueMicrotask(() => {
      for (const request of lost) {
        request.why = why;
        this.#drive(request, 'gone');
      }
    });
  }

  answer(id: string, event: 'result' | 'error', body: Buffer): boolean {
    const request = this.#sent.get(id);
    if (!request) {
      this.#callers.answered(id);
      return false;
    }
    request.body = body;
    const isSentBack = event === 'error' && this.#permits.wantsVisits(request);
    if (isSentBack && this.#drive(request, 'required')) this.#left(request);
    else this.#drive(request, event);
    return true;
  }

  /** False for progress of a request that has ended, or that goes backwards. */
  progress(token: string, progress: InFlight['progress']): boolean {
    const request = this.#sent.get(token);
    if (!request || !progress || !(progress.progress > request.lastProgress)) return false;
    request.lastProgress = progress.progress;
    request.progress = progress;
    return this.#drive(request, 'progress');
  }

  /** Only this request failed on its way; the server may be well. */
  fail(id: string, failure: Failure): void {
    const request = this.#sent.get(id);
    if (!request) return;
    request.refusal = failure;
    this.#drive(request, 'gone');
  }

  // ── What lets calls through, or holds them ─────────────────────────────────

  setGate(next: Gate): void {
    const before = this.#gate;
    this.#gate = next;
    if (isOutage(next) !== isOutage(before))
      for (const request of [...this.#queue, ...this.#deferred]) this.#limitPatience(request);
    if (!this.#takesCalls()) return this.#sendAllAway();
    // A server that restarts comes back by itself; one that fell asleep in front of a queue has to be woken.
    const isNews = next.state !== before.state && next.mode === 'hold' && !isOutage(next);
    if (isNews && this.#queue.length > 0) this.#options.onWanted();
    this.pump();
  }

  /** Sends what can be sent. Not re-entrant: each end of a call pumps, and a full queue of refusals would be a stack as deep. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      for (let next = this.#queue.first; next && this.#pauses === 0 && this.canSend(); next = this.#queue.first)
        if (next.deadline <= this.#requests.world.now()) this.overdue(next);
        else this.#send(next);
    } finally {
      this.#isPumping = false;
    }
  }

  /** Nothing that may ask is sent until all who paused the lane have let go. Returns how to let go. */
  pause(): () => void {
    this.#pauses++;
    return once(() => {
      this.#pauses--;
      this.pump();
    });
  }

  /**
   * While anybody is asked on its behalf a call waits as long as it may at all; then its patience begins anew. The time of one
   * that is bound runs on.
   */
  suspend(request: InFlight): () => void {
    request.holds++;
    if (!isBound(request)) request.deadline = request.latestDeadline;
    return once(() => {
      request.holds--;
      if (isBound(request) || request.holds > 0 || this.#sent.get(request.id) !== request) return;
      this.effects.extend(request);
      this.#requests.deadlines.reset(request);
    });
  }

  retune(settings: LaneSettings): void {
    this.#settings = settings;
    this.pump();
  }

  /** Told once when nothing is at the server, nor about to be. */
  whenIdle(listener: (() => void) | undefined): void {
    this.#onIdle = listener;
    if (listener && this.#isIdle()) listener();
  }

  // ── What others want to know of it ─────────────────────────────────────────

  canSend(): boolean {
    return (
      this.#gate.mode === 'open' && this.#occupied() < this.#settings.maxInFlight && this.#peer?.hasRoom() === true
    );
  }

  sent(id: string): InFlight | undefined {
    return this.#sent.get(id);
  }

  /** What callers have at the server; our own requests, such as lists and pings, ask and tell nothing. */
  inProgress(): InFlight[] {
    return this.atServer().filter(({ call }) => call.door !== 'troupe');
  }

  /** All that the server was sent and has not answered, our own requests included. */
  atServer(): InFlight[] {
    return this.#sent.values();
  }

  /** Those of them on whose behalf the server may ask. */
  asking(): InFlight[] {
    return this.#sent.values().filter(({ call }) => canAsk(call));
  }

  /** Whether the server has, or is about to have, a call on whose behalf it may ask; one of others, where a holder is named. */
  mayBeAsked(exceptFor?: string): boolean {
    const isAnothers = ({ call }: InFlight): boolean =>
      canAsk(call) && (exceptFor === undefined || call.holder !== exceptFor);
    return [...this.#sent.values(), ...this.#reserving].some(isAnothers);
  }

  abandoned(): Caller[] {
    return this.#callers.abandoned();
  }

  recent(withinMs: number): Caller[] {
    return this.#callers.recent(withinMs);
  }

  get idleMs(): number {
    return this.#isIdle() && this.#queue.length + this.#deferred.size === 0
      ? this.#requests.world.now() - this.#lastActiveAt
      : 0;
  }

  /** Callers' requests at the server; our own do not count. */
  get inFlight(): number {
    return this.#sentByCallers;
  }

  get gate(): Gate {
    return this.#gate;
  }

  /** The server has crashed or cannot be reached, and comes back by itself. */
  get isOut(): boolean {
    return isOutage(this.#gate);
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** How many more calls it would take at once. */
  get room(): number {
    return this.canSend() ? this.#settings.maxInFlight - this.#occupied() : 0;
  }

  // ── Steps ──────────────────────────────────────────────────────────────────

  #occupied(): number {
    return this.#sentByCallers + this.#reserving.size;
  }

  #isIdle(): boolean {
    return this.#sent.size + this.#reserving.size === 0;
  }

  #takesCalls(): boolean {
    return this.#gate.mode !== 'refuse' && (this.#settings.holdMs > 0 || !isOutage(this.#gate));
  }

  #sendAllAway(): void {
    for (let next = this.#queue.first; next; next = this.#queue.first) this.#drive(next, 'gone');
  }

  /** There is room for it at the server. What was reserved before is not reserved again. */
  #send(request: InFlight): void {
    request.refusal = this.#options.refusalOf(request.call);
    if (request.refusal) this.#drive(request, 'refuse');
    else if (!request.call.reserve || !this.#drive(request, 'reserve')) this.#drive(request, 'dispatch');
  }

  #refuse(request: InFlight, outcome: Outcome): void {
    if (!outcome.ok) request.refusal = outcome.failure;
    this.#drive(request, 'refuse');
  }

  async #reserve(request: InFlight): Promise<void> {
    let isGranted = false;
    try {
      isGranted = (await request.call.reserve?.()) === true;
    } catch (error) {
      this.#requests.onCrash(error);
    }
    if (!isGranted) {
      request.why = 'somebody else has it';
      return void this.#drive(request, 'withheld');
    }
    if (!this.#takesCalls()) return void this.#drive(request, 'refuse');
    if (!this.#drive(request, 'granted')) return;
    if (this.#gate.mode === 'hold') this.#options.onWanted();
    this.pump();
  }

  /** An unsent call waits for a server that restarts only so long; for one that starts, sleeps or is busy its own time counts. */
  #limitPatience(request: InFlight): void {
    const patience = patienceOf(request);
    request.deadline = isOutage(this.#gate)
      ? Math.min(patience, this.#requests.world.now() + this.#settings.holdMs)
      : patience;
    this.#requests.deadlines.reset(request);
  }

  #write(request: InFlight): void {
    const { call } = request;
    const id = ++this.#sequence;
    request.id = String(id);
    if (call.door !== 'troupe') this.#sentByCallers++;
    this.#sent.set(request.id, request);
    const compose = wantsProgress(call) ? progressFrame : requestFrame;
    this.#peer?.write(compose(id, call.method, call.params), request.id, call);
  }

  #finish(request: InFlight, outcome: Outcome, isRecorded = false): void {
    this.#requests.end(request);
    if (request.progress) flushProgress(request, this.#requests.world);
    this.#noteCaller(request);
    // First: what is still asked on its behalf is withdrawn before its caller hears the outcome.
    if (request.onEnded) for (const listener of request.onEnded) listener();
    this.#options.onSettled(request, outcome, isRecorded);
    this.#madeRoom();
  }

  #noteCaller({ call }: InFlight): void {
    if (call.door === 'troupe') return;
    this.#lastActiveAt = this.#requests.world.now();
    this.#callers.settled(call, this.#lastActiveAt);
  }

  #madeRoom(): void {
    if (this.#queue.length > 0) this.pump();
    if (this.#onIdle && this.#isIdle()) this.#onIdle();
  }

  /** The server has sent it back: it is at no process any more, and its place is free. */
  #left(request: InFlight): void {
    this.#noteCaller(request);
    this.#options.onLeft?.();
    this.#madeRoom();
  }

  // ── The effects of the request's chart ─────────────────────────────────────

  #waitingEffects() {
    const { requests, place = (request: InFlight) => this.admit(request) } = this.#options;
    const { world, deadlines } = requests;
    const tellOf =
      (request: InFlight): Tell =>
      (told, why) => {
        const event = told === 'approved' && request.call.isAbsent?.() ? 'absent' : told;
        if (!request.row.steps[event]) return false;
        if (why) request.refusal = why;
        return this.#drive(request, event);
      };
    return {
      park: requests.park,
      unpark: requests.unpark,
      awaitList: (request: InFlight) => {
        this.#deferred.add(request);
        if (isOutage(this.#gate)) this.#limitPatience(request);
        this.#permits.awaitList(request, tellOf(request));
      },
      askApproval: (request: InFlight) => this.#permits.askApproval(request, tellOf(request)),
      askVisits: (request: InFlight) => this.#permits.askVisits(request, tellOf(request)),
      withdraw: (request: InFlight) => {
        const { withdraw } = request;
        this.#deferred.delete(request);
        request.withdraw = undefined;
        withdraw?.();
      },
      pauseDeadline(request: InFlight): void {
        if (!isBound(request)) request.deadline = request.latestDeadline + ASK_GRACE_MS;
      },
      restartDeadline(request: InFlight): void {
        if (isBound(request)) return;
        request.startedAt = world.now();
        request.deadline = patienceOf(request);
        deadlines.reset(request);
      },
      admit: (request: InFlight) => place(request, 'here'),
      readmit: (request: InFlight) => place(request, 'anew'),
      retry: (request: InFlight) => place(request, 'back'),
    };
  }

  #sendingEffects() {
    const { requests, onAttempt } = this.#options;
    const enqueued = (request: InFlight): void => {
      if (isOutage(this.#gate)) this.#limitPatience(request);
    };
    return {
      enqueue: (request: InFlight) => {
        this.#queue.push(request);
        enqueued(request);
      },
      enqueueFirst: (request: InFlight) => {
        this.#queue.unshift(request);
        enqueued(request);
      },
      dequeue: (request: InFlight) => {
        this.#queue.remove(request);
        // What is left of its own patience counts again.
        if (request.deadline < patienceOf(request) && !isOutage(this.#gate)) request.deadline = patienceOf(request);
      },
      reserve: (request: InFlight) => {
        this.#reserving.set(request, request);
        void this.#reserve(request);
      },
      unreserve: (request: InFlight) => void this.#reserving.delete(request),
      write: (request: InFlight) => this.#write(request),
      writeAgain: (request: InFlight) => {
        request.lastProgress = Number.NEGATIVE_INFINITY;
        this.#write(request);
      },
      release: ({ id, call }: InFlight) => {
        if (this.#sent.delete(id) && call.door !== 'troupe') this.#sentByCallers--;
      },
      recordAttempt: (request: InFlight) => onAttempt?.(request, this.#say.rejected(request.body)),
      relay: (request: InFlight) => relayProgress(request, requests.world),
      extend: (request: InFlight) => {
        if (request.holds > 0 && !isBound(request)) return;
        request.deadline = Math.min(requests.world.now() + request.timeoutMs, request.latestDeadline);
      },
      cancelUpstream: (request: InFlight) => {
        if (canAsk(request.call)) this.#callers.abandon(request.id, request.call);
        if (mayBeCancelled(request.call.method)) this.#peer?.cancel(request.id, request.why);
      },
    };
  }
}

/** The server has crashed or cannot be reached, and comes back by itself. */
const isOutage = ({ mode, why }: Gate): boolean => mode === 'hold' && why !== '';

/** Until when an unsent call waits for a server that is well. */
const patienceOf = ({ startedAt, timeoutMs, latestDeadline }: InFlight): number =>
  Math.min(startedAt + timeoutMs, latestDeadline);

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}
