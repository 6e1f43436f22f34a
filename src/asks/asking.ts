// Everything that asks need, put together: their rows, the services and models that may answer, what is told of them on the
// bus, and the audit of them: who asked, of whom, and how it ended; never what was asked or said.

import type { NatsConnection, Subscription } from 'nats';
import type { Logger } from 'pino';
import type { Events } from '../bus/events.ts';
import type { Subjects } from '../bus/subjects.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import { createAttribution } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import { realWorld, type World } from '../world/world.ts';
import type { AskView } from './ask.ts';
import { createAsks } from './asks.ts';
import { createAnswerers } from './bus.ts';
import { createValidator } from './forms/validator.ts';
import type { Models } from './models/models.ts';
import { createAskRows } from './rows.ts';

export type AskingOptions = {
  readonly config: () => Config;
  readonly store: Store;
  readonly seal: Seal;
  readonly events: Events;
  readonly subjects: Subjects;
  /** The daemon's name for people, and the one it has among those on this state directory. */
  readonly name: string;
  readonly daemon: string;
  readonly instance?: string | undefined;
  readonly isAlive: (daemon: string) => boolean;
  /** What the names of all daemons on this state directory begin with. */
  readonly family: string;
  readonly rootsFor: (member: Member) => Buffer;
  readonly models: Models;
  /** A question about that task's call was opened, or is closed. */
  readonly onTask: (task: string, change: 1 | -1) => void;
  readonly logger: Logger;
  readonly world?: World;
};

export type Asking = ReturnType<typeof createAsking>;

export function createAsking(options: AskingOptions) {
  const { config, store, seal, events, daemon, isAlive, models, rootsFor, logger, world = realWorld } = options;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const answerers = createAnswerers({ subjects: options.subjects, settings: () => config().asks, world, onTrouble });
  const rows = createAskRows({ store, seal, daemon, isAlive, world, onTrouble });
  const peers = createPeers(options.subjects.askPeers(options.family), daemon, onTrouble);
  const asks = createAsks({
    config,
    instance: options.instance,
    world,
    rows,
    validator: createValidator(),
    answerers,
    models,
    attribution: createAttribution(),
    rootsFor,
    logger,
    nudge: peers.nudge,
    onOpened(view) {
      const { id, kind, server, tool, principal, task } = view;
      logger.info({ server, ask: id.slice(0, 8), kind, tool, principal }, 'ask opened');
      events.askOpened(view);
      peers.nudge();
      if (task !== undefined) options.onTask(task, 1);
    },
    onClosed(view, { outcome, by }) {
      closed(view, outcome, by);
      peers.nudge();
      if (view.task !== undefined) options.onTask(view.task, -1);
    },
  });

  function closed(view: AskView, outcome: string, by: string): void {
    const { id, kind, server, tool, principal, openedAt } = view;
    const now = world.date();
    events.askClosed({ ...view, outcome, by });
    store.note({
      at: now,
      daemon: options.name,
      door: 'ask',
      principal,
      requestId: id,
      server,
      method: METHODS[kind] ?? kind,
      name: tool,
      outcome,
      code: 0,
      error: by,
      micros: microsBetween(openedAt, now),
      bytesIn: 0,
      bytesOut: 0,
    });
    logger.info({ server, ask: id.slice(0, 8), kind, principal, outcome, by }, 'ask');
  }

  return {
    ...asks,
    /** The asks that an earlier life of a daemon left open have ended with it, and the bus is told so. */
    async start(): Promise<void> {
      for (const row of await rows.interrupt()) {
        const { id, server, tool, principal, opened_at: openedAt, expires_at: expiresAt } = row;
        const view = { id, server, tool, principal, openedAt, expiresAt, kind: row.kind as AskView['kind'] };
        closed({ ...view, stage: 'answer', message: '', waitsOn: 'inbox' }, 'interrupted', '');
      }
    },
    online(nc: NatsConnection): void {
      answerers.online(nc);
      peers.online(nc, asks.inbox.look);
    },
    close(): void {
      asks.close();
      answerers.offline();
      peers.close();
    },
  };
}

/** The daemons on the same state directory: each tells the others when there is something to read in the rows. */
function createPeers(subject: string, daemon: string, onTrouble: (error: unknown) => void) {
  let connection: NatsConnection | undefined;
  let subscription: Subscription | undefined;

  return {
    nudge(): void {
      try {
        if (connection && !connection.isClosed() && !connection.isDraining()) connection.publish(subject, daemon);
      } catch (error) {
        onTrouble(error); // the bus went away this very moment; the rows are looked at anyway
      }
    },
    online(nc: NatsConnection, onNudged: () => void): void {
      subscription?.unsubscribe();
      connection = nc;
      subscription = nc.subscribe(subject, {
        callback: (error, msg) => {
          if (error) onTrouble(error);
          else if (msg.string() !== daemon) onNudged();
        },
      });
    },
    close: () => subscription?.unsubscribe(),
  };
}

/** A row may be of a later version, which knows further kinds, or may have been damaged: neither keeps a daemon from starting. */
const microsBetween = (from: number, to: number): number =>
  Math.min(Math.max(0, Math.trunc(to - from)) * 1_000, Number.MAX_SAFE_INTEGER);

const METHODS: Record<string, string> = {
  elicitation: 'elicitation/create',
  sampling: 'sampling/createMessage',
  approval: 'tools/call',
};
