// One server's requests in flight. A request is queued until the server can take it, written once, and answered once:
// by the server, by its deadline, by a cancellation, or by the news that the server is gone.

import type { Failure } from '../failures.ts';
import { progressFrame, requestFrame } from '../protocol/compose.ts';
import type { Call, Outcome } from './call.ts';
import { createDeadlines, now } from './deadlines.ts';
import { createEcho } from './echo.ts';
import { type Gate, outcomes } from './outcomes.ts';
import type { LaneOptions, LaneSettings, Peer } from './peer.ts';
import { flushProgress, relayProgress } from './progress.ts';
import { createQueue } from './queue.ts';
import { actorDriver, type Effects, hold, type InFlight, newRequest, tableDriver } from './request.ts';

export type Lane = ReturnType<typeof createLane>;

/** Methods that a server may take its time for: their deadline moves with its progress. */
const MAY_PROGRESS = new Set(['tools/call', 'resources/read', 'prompts/get', 'completion/complete']);

export function createLane(options: LaneOptions) {
  const { server, driver, refusalOf, onSettled, onWanted, onCrash } = options;
  let { settings } = options;
  const sent = new Map<string, InFlight>();
  const queue = createQueue<InFlight>();
  let peer: Peer | undefined;
  let gate: Gate = { mode: 'refuse', state: 'stopped', why: '' };
  let sequence = 0;
  let callers = 0;
  let isPumping = false;
  let onIdle: (() => void) | undefined;
  let lastActiveAt = now();
  const say = outcomes(server);
  const echo = createEcho();
  const deadlines = createDeadlines<InFlight>((request) => drive(request, 'deadline'));

  const effects: Effects = {
    write(request) {
      const { method, params } = request.call;
      request.isSent = true;
      if (request.call.door !== 'troupe') callers++;
      sent.set(request.id, request);
      const compose = MAY_PROGRESS.has(method) ? progressFrame : requestFrame;
      peer?.write(compose(Number(request.id), method, params), request.id, request.call);
    },
    relay: relayProgress,
    extend(request) {
      if (request.holds === 0) request.deadline = Math.min(now() + request.timeoutMs, request.latestDeadline);
    },
    cancelUpstream: (request) => peer?.cancel(request.id, request.why),
    answerResult: (request) => finish(request, say.result(request.body)),
    answerError: (request) => finish(request, say.rejected(request.body)),
    answerCancelledUnsent: (request) => finish(request, say.cancelled(request, gate, 'not sent')),
    answerCancelled: (request) => finish(request, say.cancelled(request, gate, 'outcome unknown')),
    answerTimeoutUnsent: (request) => finish(request, say.timeout(request, gate, 'not sent')),
    answerTimeout: (request) => finish(request, say.timeout(request, gate, 'outcome unknown')),
    answerUnsent: (request) => finish(request, refused(request) ?? say.gone(request, gate, 'not sent')),
    answerLost: (request) => finish(request, refused(request) ?? say.gone(request, gate, 'outcome unknown')),
  };
  const drive = driver === 'actor' ? actorDriver(effects, onCrash) : tableDriver(effects);

  function begin(call: Call): InFlight {
    const request = newRequest(call, String(++sequence), settings);
    deadlines.add(request);
    return request;
  }

  function finish(request: InFlight, outcome: Outcome): void {
    if (request.isSent && sent.delete(request.id) && request.call.door !== 'troupe') callers--;
    else if (request.isQueued) queue.forget(request);
    deadlines.remove(request);
    if (request.progress) flushProgress(request);
    if (request.call.door !== 'troupe') lastActiveAt = echo.settled(request.call);
    onSettled(request, outcome);
    if (queue.length > 0) pump();
    if (onIdle && sent.size === 0) onIdle();
  }

  const refused = ({ refusal }: InFlight): Outcome | undefined => refusal && { ok: false, failure: refusal };
  const canSend = () => gate.mode === 'open' && sent.size < settings.maxInFlight && peer?.hasRoom() === true;

  /** Not re-entrant: each call that ends pumps, and a full queue of refusals would otherwise be a stack as deep. */
  function pump(): void {
    if (isPumping) return;
    isPumping = true;
    try {
      while (queue.length > 0 && canSend()) {
        const request = queue.shift();
        if (request && request.deadline <= now()) drive(request, 'deadline');
        else if (request) dispatch(request);
      }
    } finally {
      isPumping = false;
    }
  }

  function dispatch(request: InFlight): void {
    request.refusal = refusalOf(request.call);
    drive(request, request.refusal ? 'gone' : 'dispatch');
  }

  /** Takes a call; from here on it is answered exactly once. A request that has already ended is not given out. */
  function submit(call: Call): InFlight | undefined {
    lastActiveAt = now();
    const request = begin(call);
    if (gate.mode === 'refuse') return void finish(request, say.refusal(gate));
    if (queue.length === 0 && canSend()) dispatch(request);
    else if (queue.length < settings.maxQueued) queue.push(request);
    else return void finish(request, say.busy(queue.length));
    if (gate.mode === 'hold') onWanted();
    return request.isSent || request.isQueued ? request : undefined;
  }

  return {
    submit,
    /** A request of our own, such as `initialize`, which must not wait for the gate it opens. */
    ask(call: Call): void {
      drive(begin(call), peer ? 'dispatch' : 'gone');
    },
    answer(id: string, event: 'result' | 'error', body: Buffer): boolean {
      const request = sent.get(id);
      if (!request) return false;
      request.body = body;
      drive(request, event);
      return true;
    },
    progress(token: string, progress: InFlight['progress']): boolean {
      const request = sent.get(token);
      if (!request || !progress || !(progress.progress > request.lastProgress)) return false;
      request.lastProgress = progress.progress;
      request.progress = progress;
      drive(request, 'progress');
      return true;
    },
    /** Only this request failed on its way; the server may be well. */
    fail(id: string, failure: Failure): void {
      const request = sent.get(id);
      if (request) drive(Object.assign(request, { refusal: failure }), 'gone');
    },
    /** While anybody is asked on its behalf a call waits as long as it may at all; then its patience begins anew. */
    suspend: (request: InFlight): (() => void) =>
      hold(request, () => {
        if (sent.get(request.id) !== request) return;
        deadlines.remove(request);
        effects.extend(request);
        deadlines.add(request);
      }),
    cancel(request: InFlight, why: string): void {
      request.why = why;
      drive(request, 'cancel');
    },
    attach(next: Peer): void {
      peer = next;
    },
    /** The server is gone: what was sent is lost. Callers hear of it once the gate says what has become of the server. */
    detach(why: string): void {
      peer = undefined;
      const lost = [...sent.values()];
      queueMicrotask(() => {
        for (const request of lost) drive(Object.assign(request, { why }), 'gone');
      });
    },
    setGate(next: Gate): void {
      const isNews = next.state !== gate.state; // to be wanted is an event too, and each event ends here
      gate = next;
      if (gate.mode === 'refuse') for (const request of queue.clear()) drive(request, 'gone');
      else if (isNews && gate.mode === 'hold' && queue.length > 0) onWanted();
      pump();
    },
    pump,
    whenIdle(listener: (() => void) | undefined): void {
      onIdle = listener;
      if (listener && sent.size === 0) listener();
    },
    retune(next: LaneSettings): void {
      settings = next;
      pump();
    },
    sent: (id: string): InFlight | undefined => sent.get(id),
    /** What callers have at the server; our own requests, such as lists and pings, ask and tell nothing. */
    inProgress: (): InFlight[] => [...sent.values()].filter(({ call }) => call.door !== 'troupe'),
    recent: echo.recent,
    get idleMs() {
      return sent.size > 0 || queue.length > 0 ? 0 : now() - lastActiveAt;
    },
    /** Callers' requests at the server; our own, such as lists and pings, do not count. */
    get inFlight() {
      return callers;
    },
    get queued() {
      return queue.length;
    },
  };
}
