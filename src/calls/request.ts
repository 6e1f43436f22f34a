// One request in flight, and the two ways to drive it through its chart: by the table that the chart is lowered to, the default,
// or as a real XState actor for whoever wants to inspect one. Both make the same steps; a contract test runs over both.

import { createActor } from 'xstate';
import { lowered, type Row } from '../../machines/lowered.ts';
import { type RequestEffect, type RequestEvent, requestMachine } from '../../machines/request.ts';
import type { Failure } from '../protocol/failures.ts';
import { mayAsk, mayProgress, methodNames, rowOf } from '../protocol/methods.ts';
import { progressTokenOf } from '../protocol/signals.ts';
import type { Call } from './call.ts';
import type { Due } from './deadlines.ts';

export type EventType = RequestEvent['type'];
export type Progress = { progress: number; total?: number; message?: string };

/** Methods that a server may take its time for: their deadline moves with its progress. */
export const MAY_PROGRESS: ReadonlySet<string> = new Set(methodNames.filter(mayProgress));

/** Whether it is sent with a token for its progress: a foreign method only if its caller gave one, which would be no token of ours. */
export const wantsProgress = ({ method, params }: Pick<Call, 'method' | 'params'>): boolean =>
  MAY_PROGRESS.has(method) || (rowOf(method) === undefined && progressTokenOf(params) !== undefined);

/** Whether a server may ask something on behalf of it: never for our own requests, nor to complete a word. */
export const canAsk = ({ door, method }: Pick<Call, 'door' | 'method'>): boolean => door !== 'troupe' && mayAsk(method);

/**
 * Whether it waits for somebody's word no longer than for anything else: its caller has said how long it waits, which is a promise
 * to the caller, or the caller cannot be told what is waited for. A task is its own caller, and waits as long as it lives.
 */
export const isBound = ({ call }: Pick<InFlight, 'call'>): boolean =>
  call.task === undefined && (call.timeoutMs !== undefined || call.isTold?.(call) === false);

/** Until when somebody may be asked on its behalf. */
export const asksUntil = (request: InFlight): number => (isBound(request) ? request.deadline : request.latestDeadline);

/** A plain record: it is made and dropped for every call. Where it is in its life is its row of the table, and nothing else. */
export type InFlight = {
  readonly call: Call;
  /** The lane that it is in, which carries out what its chart orders. Another process of its server may take it over. */
  owner: Owner;
  /** Our id towards the server, as it stands in the frame that was written last. */
  id: string;
  /** When its patience began: with its arrival, and anew when somebody's word has let it go on. */
  startedAt: number;
  readonly latestDeadline: number;
  readonly timeoutMs: number;
  deadline: number;
  /** Its place among the deadlines. */
  slot: number;
  dueBefore: Due | undefined;
  dueAfter: Due | undefined;
  /** Its neighbours in the queue. */
  previous: InFlight | undefined;
  next: InFlight | undefined;
  /** What the event at hand brought: the bytes of a result or an error, why the server is gone, why it is cancelled. */
  body: Buffer;
  why: string;
  refusal: Failure | undefined;
  progress: Progress | undefined;
  stopFlush: (() => void) | undefined;
  lastProgress: number;
  relayedAt: number;
  /** How many questions to the caller's side are open on its behalf. */
  holds: number;
  /** The command that answers the last of them, also when nobody has; empty when somebody did. */
  question: string;
  /** Takes back what somebody is asked before it may go on. */
  withdraw: (() => void) | undefined;
  /** Those who want to know when it has ended; hardly ever anybody. */
  onEnded: Set<() => void> | undefined;
  row: Row<EventType, RequestEffect>;
  /** Its actor, where requests are driven as actors. */
  send: ((event: EventType) => void) | undefined;
};

export type Effects = { readonly [effect in RequestEffect]: (request: InFlight) => void };
/** The lane that a request is in. */
export type Owner = {
  readonly effects: Effects;
  overdue(request: InFlight): void;
};

const FIRST_ROW = lowered<EventType, RequestEffect>(requestMachine);
const NOTHING = Buffer.alloc(0);

export type Limits = { readonly timeoutMs: number; readonly maxTimeoutMs: number };

export function newRequest(call: Call, owner: Owner, limits: Limits, startedAt: number): InFlight {
  const mostMs = call.maxTimeoutMs ?? limits.maxTimeoutMs;
  const timeoutMs = Math.min(call.timeoutMs ?? limits.timeoutMs, mostMs);
  return {
    call,
    owner,
    id: '',
    startedAt,
    latestDeadline: startedAt + mostMs,
    timeoutMs,
    deadline: startedAt + timeoutMs,
    slot: -1,
    dueBefore: undefined,
    dueAfter: undefined,
    previous: undefined,
    next: undefined,
    body: NOTHING,
    why: '',
    refusal: undefined,
    progress: undefined,
    stopFlush: undefined,
    lastProgress: Number.NEGATIVE_INFINITY,
    relayedAt: Number.NEGATIVE_INFINITY,
    holds: 0,
    question: '',
    withdraw: undefined,
    onEnded: undefined,
    row: FIRST_ROW,
    send: undefined,
  };
}

/** It is at its server, and its caller has left. */
export const isUnheard = ({ row }: InFlight): boolean => row.state === 'unheard';

export const hasEnded = ({ row }: InFlight): boolean => row.isFinal;

/** Told once its caller has been answered. Returns how to hear no more of it. */
export function whenEnded(request: InFlight, listener: () => void): () => void {
  const listeners = request.onEnded ?? new Set();
  request.onEnded = listeners.add(listener);
  return () => listeners.delete(listener);
}

// ── The drivers ──────────────────────────────────────────────────────────────

/** Makes one step. False for an event that the request's state does not wait for, such as a second answer: nothing happens. */
export type Driver = (request: InFlight, event: EventType) => boolean;

export const tableDriver: Driver = (request, event) => {
  const step = request.row.steps[event];
  if (!step) return false;
  request.row = step.next;
  const { effects } = step;
  for (let at = 0; at < effects.length; at++) request.owner.effects[effects[at] as RequestEffect](request);
  return true;
};

/** The actor carries out the effects; the table goes along with it, and tells whether it knows the event. */
export function actorDriver(onCrash: (error: unknown) => void): Driver {
  return (request, event) => {
    const step = request.row.steps[event];
    if (!step) return false;
    request.send ??= begin(request, onCrash);
    request.row = step.next;
    request.send(event);
    return true;
  };
}

function begin(request: InFlight, onCrash: (error: unknown) => void): (event: EventType) => void {
  const effects = Object.keys(request.owner.effects) as RequestEffect[];
  const bound = effects.map((name) => [name, () => request.owner.effects[name](request)]);
  const actor = createActor(requestMachine.provide({ actions: Object.fromEntries(bound) }));
  actor.subscribe({ error: onCrash });
  actor.start();
  // XState complains aloud of an event to an actor that is done; here a late event is nothing unusual.
  return (type) => actor.getSnapshot().status === 'active' && actor.send({ type });
}
