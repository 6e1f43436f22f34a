// The tasks that this daemon runs, each with its actor. What happens to one is told to whoever may want to know: the session
// that made it, those who wait, listeners on the bus, and the daemons beside this one.

import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Outcome, Signal, TaskView } from '../calls/call.ts';
import type { TaskSettings } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import { progressTokenOf } from '../protocol/progress-token.ts';
import { isEnded } from '../protocol/tasks.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { TaskRow } from '../store/rows.ts';
import { createLive, type Live } from './live.ts';
import type { Peers, Progress } from './peers.ts';
import type { Reruns } from './reruns.ts';
import type { Rows } from './rows.ts';
import type { Order, TaskNews } from './task.ts';
import { viewOf } from './views.ts';
import type { Waiters } from './waiters.ts';

export type RunningOptions = {
  readonly settings: () => TaskSettings;
  readonly rows: Rows;
  readonly waiters: Waiters;
  readonly peers: Peers;
  readonly fleet: Pick<Fleet, 'submit' | 'cancel'>;
  readonly reruns: Reruns;
  /** True when the session that made it is served here. */
  readonly tell: (news: TaskNews) => boolean;
  /** For whoever listens on the bus. With the row as it is being written it is told if that stands. */
  readonly onStatus: (view: TaskView, row?: TaskRow) => void;
  readonly onProgress: (view: TaskView, progress: Progress) => void;
  readonly logger: Logger;
};
export type Running = ReturnType<typeof createRunning>;

const HELD_MS = 1_000;
const LAST_WORD_MS = 5_000;
const NOTHING = Buffer.from('{}');

export function createRunning(options: RunningOptions) {
  const { rows, waiters, peers, fleet, reruns, settings, tell, logger } = options;
  const running = new Map<string, Live>();
  const held = new Set<Live>();
  /** What came of those that have ended here. */
  const endings = new WeakMap<TaskRow, Outcome>();
  const shown = (row: TaskRow): TaskView => viewOf(row, settings().pollMs);
  const timer = setInterval(retry, HELD_MS).unref();
  const world = {
    ...{ rows: { ...rows, setStatus }, settings, submit: fleet.submit, cancel: fleet.cancel, end, onSignal },
    ...{ mayRerun: reruns.mayRerun, isRemote: reruns.isRemote },
    onHeld: (live: Live) => void held.add(live),
    onStatus({ row }: Live) {
      announce(row);
      logger.info({ server: row.server, task: row.id.slice(0, 8), tool: row.tool, status: row.status }, 'task');
    },
    onOver(live: Live) {
      running.delete(live.row.id);
      held.delete(live);
      waiters.wake(live.row.id);
    },
    onTrouble: (error: unknown) => logger.warn(sentence(error)),
  };

  /** Their server could not take them; it may now. */
  function retry(): void {
    const waiting = [...held];
    held.clear();
    for (const live of waiting) live.run();
  }

  /** A status and the event that tells of it are one step on the disk, so the events come in the order of the statuses. */
  function setStatus(row: TaskRow): Promise<boolean> {
    const isSet = rows.setStatus(row);
    options.onStatus(shown(row), row);
    return isSet;
  }

  function end(ended: TaskRow, outcome: Outcome): Promise<boolean> {
    const isKept = rows.end(ended, outcome);
    options.onStatus(shown(ended), ended);
    endings.set(ended, outcome);
    return isKept;
  }

  /** The row has changed, and everybody is to know. */
  function announce(row: TaskRow): void {
    if (isEnded(row.status) && !endings.has(row)) options.onStatus(shown(row)); // cancelled, by whoever
    if (row.session !== null) tell(newsOf(row));
    peers.tell(row.id);
    waiters.wake(row.id);
  }

  function onSignal({ row, token }: Live, signal: Signal): void {
    const isHere = tell(newsOf(row, signal, token));
    if (signal.type !== 'progress') return;
    options.onProgress(shown(row), signal);
    if (row.session && !isHere) peers.tell(row.id, signal);
    waiters.touch();
  }

  const newsOf = (row: TaskRow, signal?: Signal, progressToken?: string): TaskNews => ({
    ...{ task: shown(row), session: row.session ?? undefined },
    ...{ ...(signal && { signal }), ...(progressToken !== undefined && { progressToken }) },
  });

  return {
    ...{ shown, announce },
    get: (id: string): Live | undefined => running.get(id),
    /** A result that this daemon has just written, and need not read again. A failure is told as the disk has it. */
    outcomeOf({ row }: Live): Outcome | undefined {
      const outcome = endings.get(row);
      return outcome?.ok ? outcome : undefined;
    },
    get size() {
      return running.size;
    },
    begin(row: TaskRow, params: Buffer, canAnswer?: Order['canAnswer']): Live {
      const live = createLive(world, { row, params, ...(canAnswer && { canAnswer }) });
      running.set(row.id, live);
      return live;
    },
    /** Another daemon has changed a row, or tells of a call that it makes. */
    told(id: string, progress: Progress | undefined): void {
      const live = running.get(id);
      const row = rows.find(id);
      const isLost = live !== undefined && (row?.epoch !== live.row.epoch || isEnded(row.status));
      if (isLost) live.lost();
      if (row && (isLost || !live))
        tell(newsOf(row, progress, progress && progressTokenOf(rows.paramsOf(id) ?? NOTHING)));
      waiters.wake(id);
    },
    /** After a sleep: whatever was given to others meanwhile is lost. */
    overslept(): void {
      const own = new Map(rows.own().map((row) => [row.id, row.epoch]));
      for (const live of [...running.values()]) if (own.get(live.row.id) !== live.row.epoch) live.lost();
    },
    /** What has not been sent, or goes on without us, is for whoever comes next; what was sent is waited for. */
    async release(): Promise<void> {
      clearInterval(timer);
      const goesOn = ({ row }: Live) =>
        row.phase === 'queued' || (row.upstream !== null && reruns.isRemote(row.server));
      for (const live of running.values()) live.leave();
      const free = [...running.values()].filter(goesOn);
      await Promise.all(free.map((live) => live.release()));
      for (const { row } of free) peers.tell(row.id);
    },
    /** Resolves when all have come to their end; a disk that refuses the last word is not waited for long. */
    async ended(): Promise<void> {
      const over = Promise.all([...running.values()].map((live) => live.over));
      await Promise.race([over, wait(LAST_WORD_MS, undefined, { ref: false })]);
    },
  };
}
