// The calls in front of a server that have not been sent: they wait, first come, first sent, until it can take them, and are
// refused when it cannot take them at all.

import type { Outcome } from './call.ts';
import { now } from './deadlines.ts';
import type { Gate, Outcomes } from './outcomes.ts';
import { createQueue } from './queue.ts';
import { canAsk, type Driver, type InFlight } from './request.ts';

export type EntranceOptions = {
  readonly say: Outcomes;
  readonly maxQueued: () => number;
  readonly hasRoom: () => boolean;
  readonly drive: Driver;
  readonly dispatch: (request: InFlight) => void;
  readonly finish: (request: InFlight, outcome: Outcome) => void;
  readonly onWanted: () => void;
};

export function createEntrance({ say, maxQueued, hasRoom, drive, dispatch, finish, onWanted }: EntranceOptions) {
  const queue = createQueue<InFlight>();
  let gate: Gate = { mode: 'refuse', state: 'stopped', why: '' };
  let isPumping = false;
  let pauses = 0;

  const canSend = () => gate.mode === 'open' && hasRoom();

  /** Not re-entrant: each call that ends pumps, and a full queue of refusals would otherwise be a stack as deep. */
  function pump(): void {
    if (isPumping) return;
    isPumping = true;
    try {
      while (queue.length > 0 && pauses === 0 && canSend()) {
        const request = queue.shift();
        if (request && request.deadline <= now()) drive(request, 'deadline');
        else if (request) dispatch(request);
      }
    } finally {
      isPumping = false;
    }
  }

  return {
    pump,
    canSend,
    /** A request that has already ended is not given out. */
    enter(request: InFlight): InFlight | undefined {
      if (gate.mode === 'refuse') return void finish(request, say.refusal(gate));
      const mayPass = pauses === 0 ? queue.length === 0 : !canAsk(request.call);
      if (mayPass && canSend()) dispatch(request);
      else if (queue.length < maxQueued()) queue.push(request);
      else return void finish(request, say.busy(queue.length));
      if (gate.mode === 'hold') onWanted();
      return request.isSent || request.isQueued || request.isReserving ? request : undefined;
    },
    /** One whose turn it was, and that was kept: it goes on now, or is the first to when that is possible. */
    readmit(request: InFlight): void {
      if (gate.mode === 'refuse') return finish(request, say.refusal(gate));
      if (canSend() && (pauses === 0 || !canAsk(request.call))) return dispatch(request);
      queue.unshift(request);
      if (gate.mode === 'hold') onWanted();
    },
    /** It ended while it waited. */
    forget: (request: InFlight): void => queue.forget(request),
    first: queue.first,
    shift: queue.shift,
    setGate(next: Gate): void {
      const isNews = next.state !== gate.state; // to be wanted is an event too, and each event ends here
      gate = next;
      if (gate.mode === 'refuse') for (const request of queue.clear()) drive(request, 'gone');
      else if (isNews && gate.mode === 'hold' && queue.length > 0) onWanted();
      pump();
    },
    /** Nothing that may ask is sent until everybody who wants it so has let go. Returns how to let go. */
    pause(): () => void {
      let isPaused = true;
      pauses++;
      return () => {
        if (!isPaused) return;
        isPaused = false;
        pauses--;
        pump();
      };
    },
    get gate() {
      return gate;
    },
    get length() {
      return queue.length;
    },
  };
}
