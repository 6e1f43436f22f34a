// All tasks, whichever daemon runs them. An id is given out when its row is on the disk; from then on the row is the truth, for
// every daemon that is asked.

import type { Outcome, TaskView } from '../calls/call.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { isEnded } from '../protocol/tasks.ts';
import type { TaskRow } from '../store/rows.ts';
import { type Allowance, allowance } from '../telemetry/allowance.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import { startAdoption } from './adoption.ts';
import { newTask, type OwnedTask } from './owned-task.ts';
import type { Owners } from './owners.ts';
import { createRunning, type RunningOptions } from './running.ts';
import { availableServers, canBeSent, serverRules, type TaskFleet } from './servers.ts';
import { cursorOf, type Order, type Principal, placeOf, type Tasks } from './task.ts';

export type TasksOptions = Omit<RunningOptions, 'rules' | 'fleet'> & {
  readonly owners: Owners;
  readonly fleet: TaskFleet;
  readonly audit: (about: Audited, method: string, outcome: string) => void;
};
export type Audited = Pick<TaskRow, 'id' | 'principal' | 'server' | 'tool'>;
/** What the parts of this file share. */
type Shared = TasksOptions & { readonly running: ReturnType<typeof createRunning>; readonly isClosing: () => boolean };

const PAGE = 100;
const EXPIRE_MS = 2_000;

export function createTasks(options: TasksOptions) {
  const { world, rows, owners, waiters, fleet, logger } = options;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const running = createRunning({ ...options, rules: serverRules(fleet) });
  let isClosing = false;
  const shared: Shared = { ...options, running, isClosing: () => isClosing };
  let adoption: ReturnType<typeof startAdoption> | undefined;
  let stopExpiring = (): void => {};

  const api: Tasks = {
    create: taskMaker(shared),
    ...taskLookups(shared),
    async prune(olderMs) {
      const count = await rows.deleteEnded(olderMs);
      if (count > 0) waiters.touch();
      return count;
    },
    isRunningFor: running.isRunningFor,
    get version() {
      return waiters.version;
    },
    changed: waiters.changed,
  };

  return {
    api,
    told: running.told,
    overslept: running.overslept,
    unfinished: rows.unfinished,
    asked: running.asked,
    /** Where the tasks are that run here, in words of their chart. */
    states: running.states,
    /** Whether anything here must not be taken for dead. */
    isNeeded: (): boolean => running.count() > 0,
    start(): void {
      adoption = startAdoption({ world, rows, owners, running, servers: () => availableServers(fleet), onTrouble });
      stopExpiring = world.every(EXPIRE_MS, () => void rows.expire().catch(onTrouble));
    },
    /** Nothing new, and nobody waits here any more: the doors are about to close. */
    stopWaiting(): void {
      isClosing = true;
      waiters.close();
    },
    /** The servers are about to stop. */
    async leave(): Promise<void> {
      isClosing = true;
      stopExpiring();
      await adoption?.stop();
      await running.leave();
    },
    /** Resolves when all that was sent has come to its end, on the disk too. */
    ended: running.ended,
  };
}

// ── Making them ──────────────────────────────────────────────────────────────

function taskMaker({ rows, owners, waiters, fleet, settings, audit, running, isClosing }: Shared) {
  /** How many are being added for each server: they will be sent before the next one. */
  const arriving = new Map<string, number>();

  async function create(order: Order): Promise<TaskView> {
    if (isClosing()) throw new TroupeError('unavailable', 'troupe stops; try again when it is back');
    const ahead = arriving.get(order.server) ?? 0;
    const task = newTask(rows.newRow(order), order.params, order.canAnswer);
    // What can be sent at once is created as sent: one write says both.
    if (canBeSent(fleet, running.callOf(task), ahead)) Object.assign(task.row, { phase: 'dispatching', attempt: 1 });
    arriving.set(order.server, ahead + 1);
    try {
      owners.beat();
      return (await isAdded(task, order)) ? begun(task) : earlier(order);
    } catch (error) {
      running.send(task, 'refused'); // one that has begun does not know this event
      throw error;
    } finally {
      arriving.set(order.server, (arriving.get(order.server) ?? 1) - 1);
    }
  }

  async function isAdded(task: OwnedTask, order: Order): Promise<boolean> {
    const isNew = (await running.create(task)) || (hasExpiredKey(order) && (await addedAnew(task)));
    if (!isNew) running.send(task, 'refused');
    return isNew;
  }

  /** The key may be that of a task whose time is over, and that is still there. */
  function hasExpiredKey(order: Order): boolean {
    const known = order.key === undefined ? undefined : rows.byKey(order);
    return known !== undefined && rows.isExpired(known);
  }

  async function addedAnew(task: OwnedTask): Promise<boolean> {
    await rows.expire();
    return running.create(task);
  }

  /** Whoever cancels it before we know of its row tells us. Somebody may have taken us for dead; then the row says so. */
  function begun(task: OwnedTask): TaskView {
    failpoint('task.created');
    audit(task.row, 'tasks/create', 'ok');
    const { id, epoch, phase } = task.row;
    const made = running.shown(task.row);
    const isOurs = owners.isSurelyAlive() || rows.find(id)?.epoch === epoch;
    running.send(task, !isOurs ? 'taken' : phase === 'queued' ? 'created.queued' : 'created.dispatching');
    waiters.touch();
    setImmediate(failpoint, 'task.acknowledged');
    return made;
  }

  /** It was not added: the key is known, or there are too many. */
  function earlier(order: Order): TaskView {
    const known = order.key === undefined ? undefined : rows.byKey(order);
    if (known && known.fingerprint !== rows.fingerprintOf(order))
      throw new TroupeError('invalid', 'this idempotency key was used for another call; use a new one');
    if (known) return running.shown(known);
    const { maxOpen } = settings();
    throw new TroupeError(
      'busy',
      `${maxOpen} tasks are unfinished; wait, cancel some, or raise x-troupe.tasks.maxOpen`,
    );
  }

  return create;
}

// ── Looking at them ──────────────────────────────────────────────────────────

function taskLookups(shared: Shared): Pick<Tasks, 'get' | 'list' | 'outcome' | 'cancel'> {
  const { rows, waiters, audit, running, isClosing } = shared;
  const refuseUnknown = unknownIds(shared);

  /** With `hasWaited` one whose time is over is still told: whoever has waited for it is told how it ended. */
  function found<Row extends TaskRow>(
    id: string,
    principal: Principal,
    find: (id: string) => Row | undefined,
    hasWaited = false,
  ): Row {
    const row = find(id);
    const isTheirs = row && (principal === undefined || row.principal === principal);
    if (!isTheirs || (rows.isExpired(row) && !hasWaited)) return refuseUnknown(principal, id);
    return row;
  }

  /** A task that runs here need not be read: its end is known here first, and a daemon that takes it away wakes us. */
  async function outcomeHere(task: OwnedTask, principal: Principal, signal?: AbortSignal) {
    found(task.row.id, principal, () => task.row);
    await waiters.next(task.row.id, signal);
    return running.outcomeOf(task);
  }

  async function outcome(id: string, principal: Principal, signal?: AbortSignal): Promise<Outcome> {
    const task = running.get(id);
    let hasWaited = false;
    if (task && !isClosing()) {
      const known = await outcomeHere(task, principal, signal);
      if (known) return fetched(task.row, known);
      hasWaited = true;
    }
    for (;;) {
      const row = found(id, principal, rows.findWhole, hasWaited);
      const ended = rows.outcomeOf(row);
      if (ended) return fetched(row, ended);
      if (isClosing())
        throw new TroupeError('unavailable', 'troupe stops; the task goes on, ask again when it is back');
      await waiters.next(id, signal);
      hasWaited = true;
    }
  }

  function fetched(row: TaskRow, ended: Outcome): Outcome {
    audit(row, 'tasks/result', row.status);
    return ended;
  }

  async function cancel(id: string, principal: Principal): Promise<TaskView> {
    const before = found(id, principal, rows.find);
    if (isEnded(before.status)) throw hasEnded(before.status);
    const isCancelled = await running.cancel(before);
    const row = found(id, principal, rows.find);
    if (!isCancelled) throw hasEnded(row.status);
    audit(row, 'tasks/cancel', 'ok');
    return running.shown(row);
  }

  return {
    outcome,
    cancel,
    get: (id, principal) => running.shown(found(id, principal, rows.find)),
    list(principal, cursor) {
      const page = rows.page(principal, placeOf(cursor), PAGE + 1);
      const last = page[PAGE - 1];
      const tasks = page
        .slice(0, PAGE)
        .filter((row) => !rows.isExpired(row))
        .map(running.shown);
      return page.length > PAGE && last ? { tasks, next: cursorOf(last) } : { tasks };
    },
  };
}

const hasEnded = (status: string): TroupeError =>
  new TroupeError('ended', `the task has ended: it is ${status}, and stays so`);

// ── Ids that do not exist ────────────────────────────────────────────────────

const UNKNOWN_A_SECOND = 10;
const MAX_PRINCIPALS = 1_000;

/**
 * A principal that asks for tasks that do not exist may be guessing ids: that is noted, and soon refused. A host that lost count
 * of its tasks guesses nothing, so a few are free. All are told the same, whether the id is nobody's or another's.
 */
function unknownIds({ world, audit, logger }: Shared) {
  const allowances = new Map<string, Allowance>();

  function allowanceOf(principal: string): Allowance {
    const found = allowances.get(principal) ?? allowance(UNKNOWN_A_SECOND, world);
    allowances.delete(principal);
    allowances.set(principal, found);
    const [oldest] = allowances.keys();
    if (allowances.size > MAX_PRINCIPALS && oldest !== undefined) allowances.delete(oldest);
    return found;
  }

  function note(principal: string, isRefused: boolean): void {
    audit({ id: '', principal, server: '', tool: '' }, 'tasks/get', isRefused ? 'busy' : 'unknown');
    if (isRefused) logger.warn({ principal }, 'asks for many tasks that are not there');
  }

  return (principal: Principal, id: string): never => {
    const isRefused = principal !== undefined && !allowanceOf(principal).take();
    if (principal !== undefined) note(principal, isRefused);
    if (isRefused) throw new TroupeError('busy', 'too many of these tasks are not there; wait a second');
    throw new TroupeError('unknownName', `there is no task ${id.slice(0, 64)}; it may have expired`);
  };
}
