// Everything that asks need, put together: their rows, the services and models that may answer, what is told of them on the
// bus, and what is kept of them: who asked, of whom, and how it ended; never what.

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
import type { AskView } from './ask.ts';
import { createAsks } from './asks.ts';
import { createAnswerers } from './bus.ts';
import { createValidator } from './forms/validator.ts';
import type { Models } from './models/models.ts';
import { createRows } from './rows.ts';

export type AskingOptions = {
  readonly config: () => Config;
  readonly store: Store;
  readonly seal: Seal;
  readonly events: Events;
  readonly subjects: Subjects;
  /** The daemon's name for people, and the one it has among those on this state directory. */
  readonly name: string;
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  /** What the names of all daemons on this state directory begin with. */
  readonly family: string;
  readonly rootsFor: (member: Member) => Buffer;
  readonly models: Models;
  /** A question about that task's call was opened, or is closed. */
  readonly onTask: (task: string, change: 1 | -1) => void;
  readonly logger: Logger;
};
export type Asking = ReturnType<typeof createAsking>;

export function createAsking(options: AskingOptions) {
  const { config, store, seal, events, daemon, isAlive, logger } = options;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const subject = options.subjects.askPeers(options.family);
  const answerers = createAnswerers({ subjects: options.subjects, settings: () => config().asks, onTrouble });
  const rows = createRows({ store, seal, daemon, isAlive, onTrouble });
  const asks = createAsks({
    ...{
      config,
      rows,
      validator: createValidator(),
      answerers,
      models: options.models,
      rootsFor: options.rootsFor,
      logger,
    },
    ...{ attribution: createAttribution(), nudge },
    onOpened(live) {
      const { id, kind, server, tool, principal, task } = live.view();
      logger.info({ server, ask: id.slice(0, 8), kind, tool, principal }, 'ask opened');
      events.askOpened(live.view());
      nudge();
      if (task !== undefined) options.onTask(task, 1);
    },
    onClosed(live, { outcome, by }) {
      const view = live.view();
      closed(view, outcome, by);
      nudge();
      if (view.task !== undefined) options.onTask(view.task, -1);
    },
  });
  let connection: NatsConnection | undefined;
  let subscription: Subscription | undefined;

  /** The daemons beside us have something to read in the rows. */
  function nudge(): void {
    try {
      if (connection && !connection.isClosed() && !connection.isDraining()) connection.publish(subject, daemon);
    } catch (error) {
      onTrouble(error); // the bus went away this very moment; the rows are looked at anyway
    }
  }

  function closed(view: AskView, outcome: string, by: string): void {
    const { id, kind, server, tool, principal, openedAt } = view;
    const micros = (Date.now() - openedAt) * 1_000;
    events.askClosed({ ...view, outcome, by });
    const about = [
      Date.now(),
      options.name,
      'ask',
      principal,
      id,
      server,
      METHODS[kind],
      tool.slice(0, 1_024),
      outcome,
    ];
    store.write('addAudit', [...about, 0, by, micros, 0, 0]);
    logger.info({ server, ask: id.slice(0, 8), kind, principal, outcome, by }, 'ask');
  }

  return {
    ...asks,
    /** What an earlier life left open has ended with it, and is told so. */
    async start(): Promise<void> {
      for (const row of await rows.interrupt()) {
        const { id, server, tool, principal, opened_at: openedAt, expires_at: expiresAt } = row;
        const view = { id, server, tool, principal, openedAt, expiresAt, kind: row.kind as AskView['kind'] };
        closed({ ...view, stage: 'answer', message: '', waitsOn: 'inbox' }, 'interrupted', '');
      }
    },
    online(nc: NatsConnection): void {
      answerers.online(nc);
      subscription?.unsubscribe();
      connection = nc;
      subscription = nc.subscribe(subject, {
        callback: (error, msg) => {
          if (error) onTrouble(error);
          else if (msg.string() !== daemon) asks.inbox.look();
        },
      });
    },
    close(): void {
      asks.close();
      answerers.offline();
      subscription?.unsubscribe();
    },
  };
}

const METHODS: Record<AskView['kind'], string> = {
  elicitation: 'elicitation/create',
  sampling: 'sampling/createMessage',
  approval: 'tools/call',
};
