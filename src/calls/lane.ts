// One server's requests in flight. A request is queued until the server can take it, written once, and answered once:
// by the server, by its deadline, by a cancellation, or by the news that the server is gone.

import { progressFrame, requestFrame } from '../protocol/compose.ts';
import type { Failure } from '../protocol/failures.ts';
import { mayBeCancelled } from '../protocol/methods.ts';
import { createAbandoned } from './abandoned.ts';
import type { Call, Outcome } from './call.ts';
import { createDeadlines, now } from './deadlines.ts';
import { createEcho } from './echo.ts';
import { createEntrance } from './entrance.ts';
import { occupants } from './occupants.ts';
import { endings, outcomes } from './outcomes.ts';
import type { LaneOptions, LaneSettings, Peer } from './peer.ts';
import { flushProgress, relayProgress } from './progress.ts';
import {
  actorDriver,
  type Effects,
  hold,
  type InFlight,
  MAY_PROGRESS,
  newRequest,
  tableDriver,
  whenEnded,
} from './request.ts';
import { createReservations } from './reservations.ts';

export type Lane = ReturnType<typeof createLane>;

export function createLane(options: LaneOptions) {
  const { server, driver, refusalOf, onSettled, onWanted, onCrash } = options;
  let { settings } = options;
  const sent = new Map<string, InFlight>();
  let peer: Peer | undefined;
  let [sequence, callers] = [0, 0];
  let onIdle: (() => void) | undefined;
  let lastActiveAt = now();
  const say = outcomes(server);
  const echo = createEcho();
  const abandoned = createAbandoned();
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
    cancelUpstream(request) {
      abandoned.add(request); // it may not listen
      if (mayBeCancelled(request.call.method)) peer?.cancel(request.id, request.why);
    },
    ...endings(say, () => entrance.gate, finish),
  };
  const drive = driver === 'actor' ? actorDriver(effects, onCrash) : tableDriver(effects);
  const entrance = createEntrance({
    ...{ say, drive, dispatch, finish, onWanted, maxQueued: () => settings.maxQueued },
    hasRoom: () => callers + reservations.size() < settings.maxInFlight && peer?.hasRoom() === true,
  });
  const reservations = createReservations({ drive, readmit: entrance.readmit, onCrash });

  function begin(call: Call): InFlight {
    const request = newRequest(call, String(++sequence), settings);
    deadlines.add(request);
    return request;
  }

  function finish(request: InFlight, outcome: Outcome): void {
    if (request.isSent && sent.delete(request.id) && request.call.door !== 'troupe') callers--;
    else if (request.isQueued) entrance.forget(request);
    else reservations.forget(request);
    deadlines.remove(request);
    if (request.progress) flushProgress(request);
    if (request.call.door !== 'troupe') lastActiveAt = echo.settled(request.call);
    // First: what is still asked on its behalf is withdrawn before its caller hears the outcome.
    if (request.onEnded) for (const listener of request.onEnded) listener();
    onSettled(request, outcome);
    if (entrance.length > 0) entrance.pump();
    if (onIdle && sent.size + reservations.size() === 0) onIdle();
  }

  function dispatch(request: InFlight): void {
    request.refusal = refusalOf(request.call);
    if (request.refusal) drive(request, 'gone');
    else if (!request.call.reserve || !reservations.begin(request, request.call.reserve)) drive(request, 'dispatch');
  }

  return {
    /** Takes a call; from here on it is answered exactly once. A request that has already ended is not given out. */
    submit(call: Call): InFlight | undefined {
      lastActiveAt = now();
      return entrance.enter(begin(call));
    },
    /** Takes one that was let go by another lane of the same server, and with it the promise to answer it. */
    adopt(request: InFlight): InFlight | undefined {
      lastActiveAt = now();
      request.id = String(++sequence);
      deadlines.add(request);
      return entrance.enter(request);
    },
    /** The one that has waited longest, and how to let it go. */
    first: entrance.first,
    letGo(): InFlight | undefined {
      const request = entrance.shift();
      if (request) deadlines.remove(request);
      return request;
    },
    /** A request of our own, such as `initialize`, which must not wait for the gate it opens. */
    ask(call: Call): void {
      drive(begin(call), peer ? 'dispatch' : 'gone');
    },
    answer(id: string, event: 'result' | 'error', body: Buffer): boolean {
      const request = sent.get(id);
      if (!request) {
        abandoned.answered(id);
        return false;
      }
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
      abandoned.clear();
    },
    /** The server is gone: what was sent is lost. Callers hear of it once the gate says what has become of the server. */
    detach(why: string): void {
      peer = undefined;
      const lost = [...sent.values()];
      queueMicrotask(() => {
        for (const request of lost) drive(Object.assign(request, { why }), 'gone');
      });
    },
    setGate: entrance.setGate,
    pump: entrance.pump,
    pause: entrance.pause,
    canSend: entrance.canSend,
    whenEnded,
    whenIdle(listener: (() => void) | undefined): void {
      onIdle = listener;
      if (listener && sent.size + reservations.size() === 0) listener();
    },
    retune(next: LaneSettings): void {
      settings = next;
      entrance.pump();
    },
    sent: (id: string): InFlight | undefined => sent.get(id),
    ...occupants(sent, reservations.all),
    abandoned: abandoned.callers,
    recent: echo.recent,
    get idleMs() {
      return sent.size + reservations.size() + entrance.length > 0 ? 0 : now() - lastActiveAt;
    },
    /** Callers' requests at the server; our own, such as lists and pings, do not count. */
    get inFlight() {
      return callers;
    },
    get gate() {
      return entrance.gate;
    },
    get queued() {
      return entrance.length;
    },
    /** How many more calls it would take at once. */
    get room() {
      return entrance.canSend() ? settings.maxInFlight - callers - reservations.size() : 0;
    },
  };
}
