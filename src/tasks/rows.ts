// The rows of tasks. Each write of an owner names the row's epoch, so that a daemon that has lost the task changes nothing, and
// tells whether it stands. The params of the call and its outcome are sealed.

import { createHash } from 'node:crypto';
import type { Outcome } from '../calls/call.ts';
import type { TaskSettings } from '../config/schema.ts';
import { type Delivery, errorObject, type Failure, type FailureCode } from '../protocol/failures.ts';
import { member } from '../protocol/json.ts';
import type { Clock } from '../store/clock.ts';
import type { TaskRow } from '../store/rows.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { World } from '../world/world.ts';
import type { Order } from './task.ts';

/** What tasks need of the store. */
export type TaskStore = Pick<Store, 'commit' | 'write' | 'all' | 'get'>;
export type TaskRowsOptions = {
  readonly world: World;
  readonly store: TaskStore;
  readonly seal: Seal;
  readonly clock: Clock;
  /** By which the tasks of this daemon are known to be its own. */
  readonly owner: string;
  readonly settings: () => TaskSettings;
};
export type TaskRows = ReturnType<typeof createTaskRows>;
type Ended = TaskRow & { readonly result: Buffer | null };

const NOTHING = Buffer.from('{}');
/** Shorter, and a task would be over before anybody could ask for it. */
const LEAST_TTL_MS = 1_000;

export function createTaskRows(options: TaskRowsOptions) {
  const made = {
    /** The row of a task that is about to be made. */
    newRow: (order: Order): TaskRow => newRow(order, options),
    fingerprintOf,
  };
  return Object.assign(made, lookups(options), upkeep(options), Object.assign(ownWrites(options), outcomes(options)));
}

const callOf = (id: string): string => `task ${id} call`;
const resultOf = (id: string): string => `task ${id} result`;

/** The writes of this owner: each resolves with whether it stands. */
function ownWrites({ store, seal, owner, settings }: TaskRowsOptions) {
  return {
    /** False when it was not added, because of the limit or the key. */
    add(row: TaskRow, params: Buffer): Promise<boolean> {
      return store.commit('addTask', [
        row.id,
        row.principal,
        row.server,
        row.tool,
        row.door,
        row.session,
        row.phase,
        row.attempt,
        owner,
        row.key,
        row.fingerprint,
        row.ttl,
        row.created_at,
        row.updated_at,
        row.created_tick,
        row.expires_tick,
        seal.seal(params, callOf(row.id)),
        row.principal,
        settings().maxOpen,
      ]);
    },
    dispatch: ({ id, epoch }: TaskRow) => store.commit('dispatchTask', [id, owner, epoch]),
    /** `unsent` is how many of its attempts came to nothing. */
    requeue: ({ id, epoch, message, updated_at }: TaskRow, unsent: 0 | 1) =>
      store.commit('requeueTask', [unsent, message, updated_at, id, owner, epoch]),
    setUpstream: ({ id, epoch, upstream }: TaskRow) => store.commit('setTaskUpstream', [upstream, id, owner, epoch]),
    setStatus: ({ id, epoch, status, message, updated_at }: TaskRow) =>
      store.commit('setTaskStatus', [status, message, updated_at, id, owner, epoch]),
    /** May be lost: the next one says more. */
    setProgress: ({ id, epoch, progress }: TaskRow): void =>
      store.write('setTaskProgress', [progress, id, owner, epoch]),
    /** As far as it has come: what was about to be dispatched has not been. */
    release: ({ id, epoch, phase, attempt }: TaskRow) =>
      store.commit('releaseTask', [phase, attempt, id, owner, epoch]),
  };
}

/** How tasks end, and what is kept of that. */
function outcomes({ world, store, seal, clock, owner, settings }: TaskRowsOptions) {
  return {
    /** False when it was cancelled, adopted or deleted before: then this outcome is nobody's. */
    end(row: TaskRow, outcome: Outcome): Promise<boolean> {
      const { keepMs } = settings();
      const expires = keepMs > 0 ? Math.min(row.expires_tick, clock.now() + keepMs) : row.expires_tick;
      const kept = outcome.ok ? outcome.result : errorObject(outcome.failure);
      const code = outcome.ok ? (outcome.isError ? 'toolError' : 'result') : outcome.failure.code;
      return store.commit('endTask', [
        row.status,
        row.message,
        code,
        outcome.ok ? null : outcome.failure.delivery,
        seal.seal(kept, resultOf(row.id)),
        Math.min(row.ttl, expires - row.created_tick),
        expires,
        row.updated_at,
        row.progress,
        row.id,
        owner,
        row.epoch,
      ]);
    },
    /** Whether it had been sent is for the row to say. */
    cancel(id: string, failure: Failure): Promise<boolean> {
      const { keepMs } = settings();
      const result = seal.seal(errorObject(failure), resultOf(id));
      const until = keepMs > 0 ? clock.now() + keepMs : Number.MAX_SAFE_INTEGER;
      return store.commit('cancelTask', [failure.message, result, world.date(), until, until, id]);
    },
    /** What a task that has ended came to; nothing for one that has not. */
    outcomeOf(row: Ended): Outcome | undefined {
      if (row.outcome === null || row.result === null) return undefined;
      const result = seal.openBytes(row.result, resultOf(row.id));
      if (!result) return { ok: false, failure: UNREADABLE };
      if (row.outcome === 'result' || row.outcome === 'toolError')
        return { ok: true, result, isError: row.outcome === 'toolError' };
      return { ok: false, failure: failureOf(row, result) };
    },
  };
}

function lookups({ store, seal, owner }: TaskRowsOptions) {
  return {
    find: (id: string): TaskRow | undefined => store.get<TaskRow>('task', [id]),
    /** With its result. */
    findWhole: (id: string): Ended | undefined => store.get<Ended>('taskResult', [id]),
    byKey: (order: Order): TaskRow | undefined => store.get('taskByKey', [order.principal, keyOf(order)]),
    paramsOf(id: string): Buffer | undefined {
      const sealed = store.get<{ call: Buffer | null }>('taskCall', [id])?.call;
      return sealed ? seal.openBytes(sealed, callOf(id)) : undefined;
    },
    countOwn: (): number => store.get<{ count: number }>('countOwned', [owner])?.count ?? 0,
    own: (): TaskRow[] => store.all<TaskRow>('ownedTasks', [owner]),
    page: (principal: string | undefined, before: number, limit: number): TaskRow[] =>
      principal === undefined
        ? store.all<TaskRow>('allTasks', [before, limit])
        : store.all<TaskRow>('tasksOf', [principal, before, limit]),
    unfinished: (): number => store.get<{ count: number }>('unfinishedTasks')?.count ?? 0,
  };
}

/** Time: what is over, and what is deleted. */
function upkeep({ world, store, clock }: TaskRowsOptions) {
  return {
    /** Those that ended so long ago, by the wall clock, as people mean it. */
    async deleteEnded(olderMs: number): Promise<number> {
      const until = world.date() - olderMs;
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
    isExpired: ({ expires_tick }: TaskRow): boolean => expires_tick <= clock.now(),
    /** How long a task still has. */
    leftMs: ({ expires_tick }: TaskRow): number => Math.max(1, expires_tick - clock.now()),
  };
}

/** One plain literal: V8 takes 40 µs for as many properties when they are spread together. */
function newRow(order: Order, { world, clock, owner, settings }: TaskRowsOptions): TaskRow {
  const { ttlMs, maxTtlMs } = settings();
  const { principal, server, tool, door, session = null } = order;
  const wanted = Math.min(Math.round(order.ttlMs ?? ttlMs), maxTtlMs);
  const ttl = Math.max(LEAST_TTL_MS, wanted);
  const [at, tick] = [world.date(), clock.now()];
  return {
    seq: 0, // its place among the others is for the disk to say
    id: world.random(16).toString('hex'),
    principal,
    server,
    tool,
    door,
    session,
    status: 'working',
    message: null,
    phase: 'queued',
    attempt: 0,
    upstream: null,
    owner,
    epoch: 1,
    key: keyOf(order),
    fingerprint: fingerprintOf(order),
    progress: null,
    ttl,
    created_at: at,
    updated_at: at,
    created_tick: tick,
    expires_tick: tick + ttl,
    outcome: null,
    delivery: null,
  };
}

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
