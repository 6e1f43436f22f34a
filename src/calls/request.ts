// One request in flight, and the two ways to drive it through its chart: by the lowered table, the default, or as a real
// XState actor for whoever wants to inspect one. Both make the same steps; a contract test runs over both.

import { createActor } from 'xstate';
import { type RequestEffect, requestMachine } from '../../machines/request.ts';
import type { Failure } from '../protocol/failures.ts';
import { mayAsk, mayProgress, methodNames } from '../protocol/methods.ts';
import type { Call } from './call.ts';
import { now } from './deadlines.ts';
import { type EventType, lowerRequest, type Row } from './table.ts';

export type Progress = { progress: number; total?: number; message?: string };

/** Methods that a server may take its time for: their deadline moves with its progress. */
export const MAY_PROGRESS: ReadonlySet<string> = new Set(methodNames.filter(mayProgress));

/** Whether a server may ask something on behalf of it: never for our own requests, nor to complete a word. */
export const canAsk = ({ door, method }: Pick<Call, 'door' | 'method'>): boolean => door !== 'troupe' && mayAsk(method);

/** A plain record: it is made and dropped for every call. */
export type InFlight = {
  readonly call: Call;
  /** Our id towards the server, as it stands in the frame; another one if it goes to another process before it is sent. */
  id: string;
  readonly startedAt: number;
  readonly latestDeadline: number;
  readonly timeoutMs: number;
  deadline: number;
  slot: number;
  isQueued: boolean;
  /** It is about to be sent, once its owner says that it may. */
  isReserving: boolean;
  isSent: boolean;
  /** What the event at hand brought: the bytes of a result or an error, why the server is gone, why it is cancelled. */
  body: Buffer;
  why: string;
  refusal: Failure | undefined;
  progress: Progress | undefined;
  progressTimer: NodeJS.Timeout | undefined;
  lastProgress: number;
  relayedAt: number;
  /** How many questions to the caller's side are open on its behalf. */
  holds: number;
  /** Who wants to know when it has ended; hardly ever anybody. */
  onEnded: Set<() => void> | undefined;
  row: Row;
  send: ((event: EventType) => void) | undefined;
};

export type Effects = { readonly [effect in RequestEffect]: (request: InFlight) => void };
/** Makes one step. An event that the request's state does not know, such as a second answer, changes nothing. */
export type Driver = (request: InFlight, event: EventType) => void;

const FIRST_ROW = lowerRequest();
const NOTHING = Buffer.alloc(0);

export function newRequest(call: Call, id: string, limits: { timeoutMs: number; maxTimeoutMs: number }): InFlight {
  const startedAt = now();
  const mostMs = call.maxTimeoutMs ?? limits.maxTimeoutMs;
  const timeoutMs = Math.min(call.timeoutMs ?? limits.timeoutMs, mostMs);
  return {
    call,
    id,
    startedAt,
    timeoutMs,
    latestDeadline: startedAt + mostMs,
    deadline: startedAt + timeoutMs,
    slot: -1,
    isQueued: false,
    isReserving: false,
    isSent: false,
    body: NOTHING,
    why: '',
    refusal: undefined,
    progress: undefined,
    progressTimer: undefined,
    lastProgress: Number.NEGATIVE_INFINITY,
    relayedAt: 0,
    holds: 0,
    onEnded: undefined,
    row: FIRST_ROW,
    send: undefined,
  };
}

/** Gives it all the time it may have, until everybody who holds it has let go. Returns how to let go. */
export function hold(request: InFlight, onFree: () => void): () => void {
  let isHeld = true;
  request.holds++;
  request.deadline = request.latestDeadline;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    request.holds--;
    if (request.holds === 0) onFree();
  };
}

/** Told once its caller has been answered. Returns how to hear no more of it. */
export function whenEnded(request: InFlight, listener: () => void): () => void {
  const listeners = request.onEnded ?? new Set();
  request.onEnded = listeners.add(listener);
  return () => listeners.delete(listener);
}

export function tableDriver(effects: Effects): Driver {
  return (request, event) => {
    const step = request.row.steps[event];
    if (!step) return;
    request.row = step.next;
    for (const effect of step.effects) effects[effect](request);
  };
}

export function actorDriver(effects: Effects, onCrash: (error: unknown) => void): Driver {
  return (request, event) => {
    request.send ??= begin(request, effects, onCrash);
    request.send(event);
  };
}

function begin(request: InFlight, effects: Effects, onCrash: (error: unknown) => void): (event: EventType) => void {
  const bound = Object.entries(effects).map(([name, run]) => [name, () => run(request)]);
  const actor = createActor(requestMachine.provide({ actions: Object.fromEntries(bound) }));
  actor.subscribe({ error: onCrash });
  actor.start();
  // XState complains aloud of an event to an actor that is done; here a late event is nothing unusual.
  return (type) => actor.getSnapshot().status === 'active' && actor.send({ type });
}
