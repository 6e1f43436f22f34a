// Everything that tasks need, put together: their rows and their clock, the owners beside this one, what is told of tasks on the
// bus, and the audit of who did what with them.

import type { NatsConnection } from 'nats';
import type { Logger } from 'pino';
import type { Events } from '../bus/events.ts';
import type { Subjects } from '../bus/subjects.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import type { Clock } from '../store/clock.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import { realWorld, type World } from '../world/world.ts';
import { createOwners } from './owners.ts';
import { createPeers } from './peers.ts';
import { createTaskRows } from './rows.ts';
import { type Audited, createTasks, type TasksOptions } from './tasks.ts';
import { createWaiters } from './waiters.ts';

export type TaskingOptions = Pick<TasksOptions, 'fleet' | 'tell' | 'onGone'> & {
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
  readonly world?: World;
};
export type Tasking = ReturnType<typeof createTasking>;

const PATIENCE_MS = 1_000;

export function createTasking(options: TaskingOptions) {
  const { store, clock, events, daemon, isAlive, fleet, tell, onGone, logger, world = realWorld } = options;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const settings = () => options.config().tasks;
  const owners = createOwners({
    world,
    store,
    clock,
    daemon,
    isAlive,
    isNeeded: () => tasks.isNeeded() || rows.unfinished() > 0,
    onOverslept: () => tasks.overslept(),
    onTrouble,
  });
  const rows = createTaskRows({ world, store, seal: options.seal, clock, owner: owners.id, settings });
  const peers = createPeers({
    subject: options.subjects.taskPeers(options.family),
    owner: owners.id,
    onTold: (id, progress) => tasks.told(id, progress),
    onTrouble,
  });
  const tasks = createTasks({
    world,
    settings,
    rows,
    owners,
    waiters: createWaiters(world),
    peers,
    fleet,
    tell,
    onGone,
    audit,
    logger,
    onStatus: events.taskStatus,
    onProgress({ taskId, principal }, { type: _, ...progress }) {
      events.progress(taskId, principal, progress);
    },
  });

  /** Neither the params nor the result of a call. */
  function audit({ id, principal, server, tool }: Audited, method: string, outcome: string): void {
    store.note({
      at: world.date(),
      daemon: options.name,
      door: 'task',
      principal,
      requestId: id,
      server,
      method,
      name: tool,
      outcome,
      code: 0,
      error: '',
      micros: 0,
      bytesIn: 0,
      bytesOut: 0,
    });
  }

  return {
    ...tasks,
    async start(): Promise<void> {
      // A database that another program holds keeps nobody from starting.
      const patience = new Promise<void>((resolve) => void world.after(PATIENCE_MS, resolve));
      await Promise.race([owners.start(), patience]);
      tasks.start();
    },
    online: (nc: NatsConnection): void => peers.online(nc),
    async close(): Promise<void> {
      await tasks.ended();
      peers.close();
      await owners.close();
    },
  };
}
