// The tasks that this daemon runs. What happens to one is told to all that may want to know: the session that made it, those
// who wait for it, listeners on the bus, and the daemons beside this one.

import type { Logger } from 'pino';
import type { Call, Outcome, Signal, TaskView } from '../calls/call.ts';
import { Transients } from '../calls/transients.ts';
import { sentence } from '../protocol/failures.ts';
import { progressTokenOf } from '../protocol/signals.ts';
import { isEnded } from '../protocol/tasks.ts';
import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import { callEffects, type EffectPorts, review, rowEffects, timeEffects } from './effects.ts';
import { interrupted, progressToKeep, unreadable } from './endings.ts';
import { type Brought, type Effects, isIn, isOver, newTask, type OwnedTask, taskDriver } from './owned-task.ts';
import type { Peers, Progress } from './peers.ts';
import { type TaskNews, viewOf } from './task.ts';
import type { Waiters } from './waiters.ts';

export type RunningOptions = Omit<EffectPorts, 'onWritten' | 'onTrouble'> & {
  readonly waiters: Waiters;
  readonly peers: Peers;
  /** True when the session that made it is served here. */
  readonly tell: (news: TaskNews) => boolean;
  /** For whoever listens on the bus. With the row as it is being written it is told if that stands. */
  readonly onStatus: (view: TaskView, row?: TaskRow) => void;
  readonly onProgress: (view: TaskView, progress: Progress) => void;
  /** A task that this session made runs here no longer. */
  readonly onGone: (session: string) => void;
  readonly logger: Logger;
};
export type Running = ReturnType<typeof createRunning>;

const LAST_WORD_MS = 5_000;
/** How often progress is written at most. */
const PROGRESS_MS = 1_000;
const NOTHING = Buffer.from('{}');

export function createRunning(options: RunningOptions) {
  const shared = createShared(options);
  const { running, send, calls, news, closing } = shared;
  return Object.assign(beginnings(shared), changes(shared), farewell(shared), {
    send,
    shown: news.shown,
    get: (id: string): OwnedTask | undefined => running.get(id),
    count: (): number => running.size,
    isRunningFor: (session: string): boolean => closing.has(({ row }) => row.session === session),
    states: () => running.values().map(({ state }) => state.value),
    /** The call that the task will be, for whoever must know whether it may be made. */
    callOf: (task: OwnedTask): Call => calls.callOf(task),
    /** A result that this daemon has just written, and need not read again. A failure is told as the disk has it. */
    outcomeOf: (task: OwnedTask): Outcome | undefined =>
      isOver(task) && isEnded(task.row.status) && task.row.status !== 'cancelled' && task.outcome?.ok
        ? task.outcome
        : undefined,
  });
}

/** What the parts of this file share. */
type Shared = ReturnType<typeof createShared>;

function createShared(options: RunningOptions) {
  const running = new Transients<string, OwnedTask>();
  const onTrouble = (error: unknown) => options.logger.warn(sentence(error));
  const news = createNews(options);
  const ports: EffectPorts = { ...options, onWritten: (row) => options.onStatus(news.shown(row), row), onTrouble };
  const send = taskDriver(() => effects, onTrouble);
  const calls = callEffects(ports, send);
  const closing = createClosing(running);
  const effects: Effects = {
    ...rowEffects(ports, send),
    ...calls.effects,
    ...timeEffects(ports, send),
    ...news.effects,
    close({ row }) {
      gone(row);
      options.waiters.wake(row.id);
    },
    discard: ({ row }) => gone(row),
  };
  function gone({ id, session }: TaskRow): void {
    running.delete(id);
    closing.review();
    if (session !== null) options.onGone(session);
  }
  /** Resolves with whether the write stands that this event orders. */
  const ordered = (task: OwnedTask, event: 'create' | 'cancel'): Promise<boolean> =>
    new Promise((settle) => send(task, event, { settle }) || settle(false));
  return { options, running, news, send, calls, closing, ordered };
}

/** How a task comes to run here. */
function beginnings({ options, running, send, calls, ordered }: Shared) {
  const { rows, rules, logger } = options;
  return {
    /** Resolves with whether its row is on the disk. */
    create(task: OwnedTask): Promise<boolean> {
      running.set(task.row.id, task);
      return ordered(task, 'create');
    },
    /** One that was left by another daemon, or by nobody, goes on as far as that can be done without doing anything twice. */
    adopt(row: TaskRow): void {
      const params = rows.paramsOf(row.id);
      const task = newTask(row, params ?? NOTHING);
      running.set(row.id, task);
      logger.warn({ server: row.server, task: row.id.slice(0, 8), tool: row.tool, phase: row.phase }, 'task adopted');
      if (row.status === 'input_required') send(task, 'adopted.asking');
      if (!params) calls.settled(task, unreadable(row));
      else if (row.phase === 'queued') send(task, 'adopted.queued');
      else if (row.upstream !== null && rules.isRemote(row.server)) send(task, 'adopted.followed');
      else calls.settled(task, interrupted(row));
    },
  };
}

/** What people, servers and other daemons do to it. */
function changes({ options, running, news, send, ordered }: Shared) {
  const { rows, waiters } = options;

  /** The row is somebody else's now, or is over. */
  const isLost = ({ row }: OwnedTask, now: TaskRow | undefined): boolean =>
    now?.epoch !== row.epoch || isEnded(now.status);

  return {
    /** Resolves with whether it was this that ended it, whichever daemon runs it. */
    async cancel(row: TaskRow): Promise<boolean> {
      const isCancelled = await ordered(running.get(row.id) ?? newTask(row, NOTHING), 'cancel');
      failpoint('task.cancelled');
      const cancelled = isCancelled ? rows.find(row.id) : undefined;
      if (cancelled) send(running.get(row.id) ?? newTask(row, NOTHING), 'cancelled', { row: cancelled });
      return isCancelled;
    },
    /** A question was opened on its behalf, or is done with. */
    asked(id: string, change: 1 | -1): void {
      const task = running.get(id);
      if (!task) return;
      task.questions += change;
      review(task, send);
    },
    /** Another daemon has changed a row, or tells of a call that it makes. */
    told(id: string, progress: Progress | undefined): void {
      const task = running.get(id);
      const row = rows.find(id);
      const isTaken =
        task !== undefined && isLost(task, row) && ((row && send(task, 'taken')) || send(task, 'row.lost'));
      if (row && (isTaken || !task))
        options.tell(news.of(row, progress, progress && progressTokenOf(rows.paramsOf(id) ?? NOTHING)));
      waiters.wake(id);
    },
    /** After a sleep: whatever was given to others meanwhile is lost. */
    overslept(): void {
      const own = new Map(rows.own().map((row) => [row.id, row]));
      for (const task of running) if (isLost(task, own.get(task.row.id))) send(task, 'row.lost');
    },
  };
}

/** How tasks are left when the daemon stops. */
function farewell({ options: { world, rules }, running, send, closing }: Shared) {
  return {
    /** What has not been sent, or goes on without us, is for whoever comes next; what was sent is waited for. */
    async leave(): Promise<void> {
      for (const task of running) {
        const { row } = task;
        task.mayRerun = rules.mayRerun(row);
        send(task, row.upstream !== null && rules.isRemote(row.server) ? 'leave.followed' : 'leave');
      }
      await closing.untilNone((task) => isIn(task, 'releasing'));
    },
    /** Resolves when all have come to their end; a disk that refuses the last word is not waited for long. */
    async ended(): Promise<void> {
      const patience = new Promise<void>((resolve) => void world.after(LAST_WORD_MS, resolve));
      await Promise.race([closing.untilNone(() => true), patience]);
    },
  };
}

/** What is told of tasks, and to whom. */
function createNews({ world, rows, settings, waiters, peers, tell, onStatus, onProgress, logger }: RunningOptions) {
  const shown = (row: TaskRow): TaskView => viewOf(row, settings().pollMs);

  const of = (row: TaskRow, signal?: Signal, progressToken?: string): TaskNews => ({
    task: shown(row),
    session: row.session ?? undefined,
    ...(signal && { signal }),
    ...(progressToken !== undefined && { progressToken }),
  });

  /** The row is another, and everybody is to know. */
  function announce(row: TaskRow): void {
    if (row.session !== null) tell(of(row));
    peers.tell(row.id);
    waiters.wake(row.id);
    const about = { server: row.server, task: row.id.slice(0, 8), tool: row.tool, status: row.status };
    if (row.status === 'failed' || row.status === 'cancelled') logger.info(about, 'task');
    else logger.debug(about, 'task'); // the audit tells of all
  }

  /** Progress is written now and then, for those who look from elsewhere. */
  function keep(task: OwnedTask, progress: Progress): void {
    task.row = { ...task.row, progress: progressToKeep(progress) };
    if (world.now() - task.progressAt < PROGRESS_MS) return;
    task.progressAt = world.now();
    rows.setProgress(task.row);
  }

  return {
    shown,
    of,
    effects: {
      tell: (task: OwnedTask, { shown: row }: Brought) => announce(row ?? task.row),
      /** Nothing was published when it was written: whoever cancels does not know whose task it is. */
      tellCancelled({ row }: OwnedTask): void {
        onStatus(shown(row));
        announce(row);
      },
      tellPeers: ({ row }: OwnedTask) => peers.tell(row.id),
      relay(task: OwnedTask, { signal }: Brought): void {
        if (!signal) return;
        const { row } = task;
        const isHere = tell(of(row, signal, task.progressToken));
        if (signal.type !== 'progress') return;
        onProgress(shown(row), signal);
        if (row.session && !isHere) peers.tell(row.id, signal);
        waiters.touch();
        keep(task, signal);
      },
    },
  };
}

/** Who waits until tasks are gone from here. */
function createClosing(running: Iterable<OwnedTask>) {
  const waiting = new Set<() => void>();

  function has(isSuch: (task: OwnedTask) => boolean): boolean {
    for (const task of running) if (isSuch(task)) return true;
    return false;
  }

  return {
    has,
    review(): void {
      for (const look of waiting) look();
    },
    untilNone(isSuch: (task: OwnedTask) => boolean): Promise<void> {
      return new Promise((resolve) => {
        const look = (): void => {
          if (has(isSuch)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      });
    },
  };
}
