// Everything that tasks need, put together: their rows and their clock, the lives of the daemons beside this one, what is told
// of them on the bus, and what is kept of who did what with them.

import { setTimeout as wait } from 'node:timers/promises';
import type { NatsConnection } from 'nats';
import type { Logger } from 'pino';
import type { Events } from '../bus/events.ts';
import type { Subjects } from '../bus/subjects.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import type { Clock } from '../store/clock.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import { createLives } from './lives.ts';
import { createPeers } from './peers.ts';
import { createRows } from './rows.ts';
import { type Audited, createTasks, type TasksOptions } from './tasks.ts';
import { createWaiters } from './waiters.ts';

export type TaskingOptions = Pick<TasksOptions, 'fleet' | 'tell'> & {
  readonly config: () => Config;
  readonly store: Store;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly events: Events;
  readonly subjects: Subjects;
  /** The daemon's name for people, and the one it has among those on this state directory. */
  readonly name: string;
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  readonly family: string;
  readonly logger: Logger;
};
export type Tasking = ReturnType<typeof createTasking>;

const PATIENCE_MS = 1_000;

export function createTasking(options: TaskingOptions) {
  const { config, store, seal, clock, events, subjects, daemon, isAlive, fleet, tell, logger } = options;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const lives = createLives({
    ...{ store, clock, daemon, isAlive, onTrouble },
    isNeeded: () => tasks.isNeeded() || rows.unfinished() > 0,
    onOverslept: () => tasks.overslept(),
  });
  const settings = () => config().tasks;
  const rows = createRows({ store, seal, clock, life: lives.id, settings });
  const peers = createPeers({
    ...{ subject: subjects.taskPeers(options.family), life: lives.id, onTrouble },
    onTold: (id, progress) => tasks.told(id, progress),
  });
  const tasks = createTasks({
    ...{ settings, rows, lives, waiters: createWaiters(), peers, fleet, tell, audit, logger },
    onStatus: events.taskStatus,
    onProgress({ taskId, principal }, { type: _, ...progress }) {
      events.progress(taskId, principal, progress);
    },
  });

  /** Never what was called with, nor what came of it. */
  function audit({ id, principal, server, tool }: Audited, method: string, outcome: string): void {
    const about = [Date.now(), options.name, 'task', principal, id, server, method, tool.slice(0, 1_024), outcome];
    store.write('addAudit', about.concat(0, '', 0, 0, 0));
  }

  return {
    ...tasks,
    async start(): Promise<void> {
      // A database that another program holds keeps nobody from starting.
      await Promise.race([lives.start(), wait(PATIENCE_MS, undefined, { ref: false })]);
      tasks.start();
    },
    online: (nc: NatsConnection): void => peers.online(nc),
    async close(): Promise<void> {
      await tasks.ended();
      peers.close();
      await lives.close();
    },
  };
}
