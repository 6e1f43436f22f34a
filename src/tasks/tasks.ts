// All tasks, whichever daemon runs them. An id is given out when its row is on the disk; from then on the row is the truth,
// whoever is asked.

import type { Outcome, TaskView } from '../calls/call.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { isEnded } from '../protocol/tasks.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import { startAdoption } from './adoption.ts';
import { createGuesses } from './guesses.ts';
import type { Lives } from './lives.ts';
import { createReruns } from './reruns.ts';
import { createRunning, type RunningOptions } from './running.ts';
import type { Order, Principal, Tasks } from './task.ts';
import { cursorOf, placeOf } from './views.ts';

export type TasksOptions = Omit<RunningOptions, 'reruns' | 'fleet'> & {
  readonly lives: Lives;
  readonly fleet: Pick<Fleet, 'submit' | 'cancel' | 'isClear' | 'refusalOf' | 'member' | 'members' | 'memberFor'>;
  readonly audit: (about: Audited, method: string, outcome: string) => void;
};
export type Audited = Pick<TaskRow, 'id' | 'principal' | 'server' | 'tool'>;

const PAGE = 100;
const EXPIRE_MS = 2_000;

export function createTasks(options: TasksOptions) {
  const { rows, lives, waiters, fleet, settings, audit, logger } = options;
  const reruns = createReruns(fleet);
  const running = createRunning({ ...options, reruns });
  /** Those that are being added, and how many to each server. */
  const coming = new Set<string>();
  const arriving = new Map<string, number>();
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const guesses = createGuesses((principal, isRefused) => {
    const outcome = isRefused ? 'busy' : 'unknown';
    audit({ id: '', principal, server: '', tool: '' }, 'tasks/get', outcome);
    if (isRefused) logger.warn({ principal }, 'asks for many tasks that are not there');
  });
  let adoption: ReturnType<typeof startAdoption> | undefined;
  let expiry: NodeJS.Timeout | undefined;
  let isClosing = false;

  async function create(order: Order): Promise<TaskView> {
    if (isClosing) throw new TroupeError('unavailable', 'troupe stops; try again when it is back');
    const ahead = arriving.get(order.server) ?? 0;
    const phase = reruns.mustTake(order, ahead) ? 'dispatching' : 'queued';
    const id = rows.newId();
    coming.add(id);
    arriving.set(order.server, ahead + 1);
    try {
      lives.beat();
      const row = (await rows.add(id, order, phase)) ?? (await addedAnew(id, order, phase));
      if (!row) return earlier(order);
      failpoint('task.created');
      audit(row, 'tasks/create', 'ok');
      const live = running.begin(row, order.params, order.canAnswer);
      if (rows.find(id)?.epoch === row.epoch) live.run();
      else live.lost(); // somebody has cancelled it, or taken us for dead
      waiters.touch();
      setImmediate(failpoint, 'task.acknowledged');
      return running.shown(row);
    } finally {
      coming.delete(id);
      arriving.set(order.server, (arriving.get(order.server) ?? 1) - 1);
    }
  }

  /** The key may be that of a task whose time is over, and that is still there. */
  async function addedAnew(id: string, order: Order, phase: 'queued' | 'dispatching'): Promise<TaskRow | undefined> {
    const known = order.key === undefined ? undefined : rows.byKey(order);
    if (!known || !rows.isOver(known)) return undefined;
    await rows.expire();
    return rows.add(id, order, phase);
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

  /** Who has waited for it is told how it ended, also when that was by the end of its time. */
  function found<Row extends TaskRow>(
    id: string,
    principal: Principal,
    find: (id: string) => Row | undefined,
    hasWaited = false,
  ): Row {
    const row = find(id);
    const isTheirs = row && (principal === undefined || row.principal === principal);
    if (!isTheirs || (rows.isOver(row) && !hasWaited)) return guesses.refuse(principal, id);
    return row;
  }

  async function outcome(id: string, principal: Principal, signal?: AbortSignal): Promise<Outcome> {
    const live = running.get(id);
    let hasWaited = false;
    if (live && !isClosing) {
      // What runs here need not be read: its end is known here first, and whoever takes it away wakes us.
      found(id, principal, () => live.row);
      await waiters.next(id, signal);
      hasWaited = true;
      const known = running.outcomeOf(live);
      if (known) return fetched(live.row, known);
    }
    for (;;) {
      const row = found(id, principal, rows.findWhole, hasWaited);
      const ended = rows.outcomeOf(row);
      if (ended) return fetched(row, ended);
      if (isClosing) throw new TroupeError('unavailable', 'troupe stops; the task goes on, ask again when it is back');
      await waiters.next(id, signal);
      hasWaited = true;
    }
  }

  function fetched(row: TaskRow, ended: Outcome): Outcome {
    audit(row, 'tasks/result', row.status);
    return ended;
  }

  async function cancel(id: string, principal: Principal): Promise<TaskView> {
    const { server, status } = found(id, principal, rows.find);
    if (isEnded(status)) throw hasEnded(status);
    const message = 'the task was cancelled by request';
    const isCancelled = await rows.cancel(id, { code: 'cancelled', delivery: 'outcome unknown', message, server });
    failpoint('task.cancelled');
    const row = found(id, principal, rows.find);
    if (!isCancelled) throw hasEnded(row.status);
    audit(row, 'tasks/cancel', 'ok');
    const live = running.get(id);
    if (live) live.cancelled(row);
    else running.announce(row);
    return running.shown(row);
  }

  const api: Tasks = {
    ...{ create, outcome, cancel },
    get: (id, principal) => running.shown(found(id, principal, rows.find)),
    list(principal, cursor) {
      const page = rows.page(principal, placeOf(cursor), PAGE + 1);
      const last = page[PAGE - 1];
      const tasks = page
        .slice(0, PAGE)
        .filter((row) => !rows.isOver(row))
        .map(running.shown);
      return page.length > PAGE && last ? { tasks, next: cursorOf(last) } : { tasks };
    },
    async prune(olderMs) {
      const count = await rows.deleteEnded(olderMs);
      if (count > 0) waiters.touch();
      return count;
    },
    get version() {
      return waiters.version;
    },
    changed: waiters.changed,
  };

  return {
    ...{ api, told: running.told, overslept: running.overslept, unfinished: rows.unfinished },
    asked: (id: string, change: 1 | -1): void => running.get(id)?.asked(change),
    /** Whether anything here must not be taken for dead. */
    isNeeded: (): boolean => running.size + coming.size > 0,
    start(): void {
      adoption = startAdoption({
        ...{ rows, lives, reruns, begin: running.begin, onTrouble },
        isKnown: (id) => running.get(id) !== undefined || coming.has(id),
        known: () => running.size + coming.size,
        onAdopted: ({ id, server, tool, phase }) =>
          logger.warn({ server, task: id.slice(0, 8), tool, phase }, 'task adopted'),
      });
      expiry = setInterval(() => void rows.expire().catch(onTrouble), EXPIRE_MS).unref();
    },
    /** Nothing new, and nobody waits here any more: the doors are about to close. */
    stopWaiting(): void {
      isClosing = true;
      waiters.close();
    },
    /** The servers are about to stop. */
    async leave(): Promise<void> {
      isClosing = true;
      clearInterval(expiry);
      await adoption?.stop();
      await running.release();
    },
    /** Resolves when all that was sent has come to its end, on the disk too. */
    ended: running.ended,
  };
}

const hasEnded = (status: string): TroupeError =>
  new TroupeError('ended', `the task has ended: it is ${status}, and stays so`);
