// The rows of tasks. A word of the owner names the row's epoch, so that nothing is changed by who has lost it: each write tells
// whether it stands. What was called and what came of it is sealed.

import { createHash } from 'node:crypto';
import type { TaskEnding } from '../../machines/task.ts';
import type { Outcome } from '../calls/call.ts';
import type { TaskSettings } from '../config/schema.ts';
import { type Delivery, errorObject, type Failure, type FailureCode } from '../protocol/failures.ts';
import { member } from '../protocol/json.ts';
import type { Clock } from '../store/clock.ts';
import type { TaskRow } from '../store/rows.ts';
import { random, type Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { Order } from './task.ts';

export type RowsOptions = {
  readonly store: Store;
  readonly seal: Seal;
  readonly clock: Clock;
  /** Whose tasks those are that this daemon runs. */
  readonly life: string;
  readonly settings: () => TaskSettings;
};
export type Rows = ReturnType<typeof createRows>;
/** Whose word it is. */
export type Held = Pick<TaskRow, 'id' | 'epoch'>;
type Ended = TaskRow & { readonly result: Buffer | null };

const NOTHING = Buffer.from('{}');
/** Shorter, and a task would be over before anybody could ask for it. */
const LEAST_TTL_MS = 1_000;

export function createRows({ store, seal, clock, life, settings }: RowsOptions) {
  const callOf = (id: string): string => `task ${id} call`;
  const resultOf = (id: string): string => `task ${id} result`;
  const find = (id: string): TaskRow | undefined => store.get<TaskRow>('task', [id]);

  return {
    find,
    newId: (): string => random(16).toString('hex'),
    /** Resolves when it is on the disk, with the row; with nothing when it is not, because of the limit or the key. */
    async add(id: string, order: Order, phase: 'queued' | 'dispatching'): Promise<TaskRow | undefined> {
      const { ttlMs, maxTtlMs, maxOpen } = settings();
      const { principal, server, tool, door, session = null, params } = order;
      const ttl = Math.max(LEAST_TTL_MS, Math.min(Math.round(order.ttlMs ?? ttlMs), maxTtlMs));
      const [at, tick, attempt] = [Date.now(), clock.now(), phase === 'queued' ? 0 : 1];
      const [key, fingerprint, expires] = [keyOf(order), fingerprintOf(order), tick + ttl];
      const isAdded = await store.commit('addTask', [
        ...[id, principal, server, tool, door, session, phase, attempt, life, key, fingerprint],
        ...[ttl, at, at, tick, expires, seal.seal(params, callOf(id)), principal, maxOpen],
      ]);
      // One plain literal: V8 takes 40 µs for as many properties when they are spread together.
      const row: TaskRow = {
        seq: 0, // its place among the others is for the disk to say
        id,
        principal,
        server,
        tool,
        door,
        session,
        status: 'working',
        message: null,
        phase,
        attempt,
        upstream: null,
        owner: life,
        epoch: 1,
        key,
        fingerprint,
        progress: null,
        ttl,
        created_at: at,
        updated_at: at,
        created_tick: tick,
        expires_tick: expires,
        outcome: null,
        delivery: null,
      };
      return isAdded ? row : undefined;
    },
    byKey: (order: Order): TaskRow | undefined => store.get('taskByKey', [order.principal, keyOf(order)]),
    paramsOf(id: string): Buffer | undefined {
      const sealed = store.get<{ call: Buffer | null }>('taskCall', [id])?.call;
      return sealed ? seal.openBytes(sealed, callOf(id)) : undefined;
    },
    dispatch: ({ id, epoch }: Held) => store.commit('dispatchTask', [id, life, epoch]),
    /** `unsent` is how many of its attempts came to nothing. */
    requeue: ({ id, epoch }: Held, unsent: 0 | 1, message: string) =>
      store.commit('requeueTask', [unsent, message, Date.now(), id, life, epoch]),
    setUpstream: ({ id, epoch }: Held, upstream: string) =>
      store.commit('setTaskUpstream', [upstream, id, life, epoch]),
    /** As the row now has it. */
    setStatus: ({ id, epoch, status, message, updated_at }: TaskRow) =>
      store.commit('setTaskStatus', [status, message, updated_at, id, life, epoch]),
    /** May be lost: the next one says more. */
    setProgress: ({ id, epoch, progress }: TaskRow): void =>
      store.write('setTaskProgress', [progress, id, life, epoch]),
    /** False when it was cancelled, adopted or deleted before: then this outcome is nobody's. */
    end(row: TaskRow, outcome: Outcome): Promise<boolean> {
      const { keepMs } = settings();
      const { id, epoch, status, message, ttl, created_tick, expires_tick, updated_at, progress } = row;
      const expires = keepMs > 0 ? Math.min(expires_tick, clock.now() + keepMs) : expires_tick;
      const [kept, delivery] = outcome.ok
        ? [outcome.result, null]
        : [errorObject(outcome.failure), outcome.failure.delivery];
      const code = outcome.ok ? (outcome.isError ? 'toolError' : 'result') : outcome.failure.code;
      return store.commit('endTask', [
        ...[status, message, code, delivery, seal.seal(kept, resultOf(id))],
        ...[Math.min(ttl, expires - created_tick), expires, updated_at, progress, id, life, epoch],
      ]);
    },
    /** Whether it had been sent is for the row to say. */
    cancel(id: string, failure: Failure): Promise<boolean> {
      const { keepMs } = settings();
      const result = seal.seal(errorObject(failure), resultOf(id));
      const until = keepMs > 0 ? clock.now() + keepMs : Number.MAX_SAFE_INTEGER;
      return store.commit('cancelTask', [failure.message, result, Date.now(), until, until, id]);
    },
    findWhole: (id: string): Ended | undefined => store.get<Ended>('taskResult', [id]),
    /** What a task that has ended came to; nothing for one that has not. */
    outcomeOf(row: Ended): Outcome | undefined {
      if (row.outcome === null || row.result === null) return undefined;
      const result = seal.openBytes(row.result, resultOf(row.id));
      if (!result) return { ok: false, failure: UNREADABLE };
      if (row.outcome === 'result' || row.outcome === 'toolError')
        return { ok: true, result, isError: row.outcome === 'toolError' };
      return { ok: false, failure: failureOf(row, result) };
    },
    /** As far as it has come: what was about to be dispatched has not been. */
    release: ({ id, epoch, phase, attempt }: TaskRow) => store.commit('releaseTask', [phase, attempt, id, life, epoch]),
    countOwn: (): number => store.get<{ count: number }>('countOwned', [life])?.count ?? 0,
    own: (): TaskRow[] => store.all<TaskRow>('ownedTasks', [life]),
    page: (principal: string | undefined, before: number, limit: number): TaskRow[] =>
      principal === undefined
        ? store.all<TaskRow>('allTasks', [before, limit])
        : store.all<TaskRow>('tasksOf', [principal, before, limit]),
    unfinished: (): number => store.get<{ count: number }>('unfinishedTasks')?.count ?? 0,
    /** Those that ended so long ago, by the wall clock, as people mean it. */
    async deleteEnded(olderMs: number): Promise<number> {
      const until = Date.now() - olderMs;
      const count = store.get<{ count: number }>('endedTasks', [until])?.count ?? 0;
      while (await store.commit('deleteEndedTasks', [until]));
      return count;
    },
    /** Those whose time is over; a few at a time, until there are none. */
    async expire(): Promise<void> {
      // Mostly there are none, and then nothing is written.
      while (store.get('expiredTask', [clock.now()])) await store.commit('pruneTasks', [clock.now()]);
    },
    /** Its time is over, though it may still be there. */
    isOver: ({ expires_tick }: TaskRow): boolean => expires_tick <= clock.now(),
    /** How long a task still has. */
    leftMs: ({ expires_tick }: TaskRow): number => Math.max(1, expires_tick - clock.now()),
    fingerprintOf,
  };
}

export type Ending = Pick<TaskRow, 'message' | 'updated_at'> & { readonly status: TaskEnding };

const UNREADABLE = {
  code: 'internal',
  delivery: 'outcome unknown',
  message: 'the result was kept under another key and cannot be read; was the state directory copied without its key?',
} as const;

/** An error of the server's own is kept as its bytes, and given out as them; one of ours is composed anew. */
function failureOf({ outcome, delivery, message }: Ended, error: Buffer): Failure {
  const failure = {
    code: outcome as FailureCode,
    delivery: (delivery ?? 'failed') as Delivery,
    message: message ?? '',
  };
  if (outcome === 'rejected') return { ...failure, error };
  const { message: said, data } = JSON.parse(error.toString());
  return { ...failure, message: said, server: data?.troupe?.server, state: data?.troupe?.state };
}

/** A key is the caller's own business, so it is kept as a hash. */
function keyOf({ principal, key }: Order): string | null {
  return key === undefined ? null : createHash('sha256').update(`${principal}\n${key}`).digest('hex');
}

/** What is called, with what; not how it is told of. Only a key is ever compared by it. */
function fingerprintOf({ server, tool, params, key }: Order): string {
  if (key === undefined) return '';
  const given = member(params, 'arguments') ?? NOTHING;
  return createHash('sha256').update(`${server}\n${tool}\n`).update(given).digest('hex');
}
