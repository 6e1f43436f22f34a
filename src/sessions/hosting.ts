// Everything that serves hosts' sessions, put together: their rows and streams, what they see, what they are told, and the
// way to the other daemons on this state directory.

import type { NatsConnection } from 'nats';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config/schema.ts';
import type { Roots } from '../roots/roots.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import { type Mirror, mirrorsOf } from '../servers/remote/mirrored.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { TaskNews, Tasks } from '../tasks/task.ts';
import { createFirstList } from './first-list.ts';
import { createHandover } from './handover.ts';
import type { HostSession } from './host.ts';
import { createNews } from './news.ts';
import { createScopes } from './scopes.ts';
import { createSessions, type LocalSessions } from './sessions.ts';
import { createStreams } from './streams.ts';
import type { Attend, World } from './world.ts';

export type HostingOptions = {
  readonly config: () => Config;
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  readonly store: Store;
  readonly seal: Seal;
  readonly roots: Roots;
  readonly tasks: Tasks;
  readonly attend: Attend;
  /** This daemon's name among those on the state directory, and whether another of them runs. */
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  /** What the names of all daemons on this state directory begin with. */
  readonly family: string;
  /** Where the daemons of this state directory meet. */
  readonly subject: string;
  readonly setLevels: (member: Member) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type Hosting = ReturnType<typeof createHosting>;

export function createHosting(options: HostingOptions) {
  const { config, fleet, catalog, store, daemon, isAlive, onTrouble } = options;
  const { maxSessions, maxStreams, sessionIdleMs: idleMs } = config().http;
  const scopes = createScopes({ config, fleet, catalog });
  const streams = createStreams({ store, daemon, isAlive, maxStreams, onTrouble });
  const handover = createHandover({ ...options, local: (id, principal) => sessions.local(id, principal) });
  const world: World = {
    ...{ fleet, catalog, store, scopes, streams, roots: options.roots, firstList: createFirstList(fleet, catalog) },
    ...{ setLevels: options.setLevels, handOver: handover.handOver, tasks: options.tasks, attend: options.attend },
  };
  const sessions: LocalSessions = createSessions({ world, maxSessions, idleMs, family: options.family, onTrouble });
  const news = createNews(sessions.live, onTrouble);

  return {
    sessions,
    news,
    /** What a tool wants repeated in headers, by the name this host has for it. */
    declarations({ id, principal }: HostSession, tool: string): readonly Mirror[] {
      const definition = sessions.local(id, principal)?.definitionOf(tool);
      const mirrors = definition ? mirrorsOf(definition) : [];
      return typeof mirrors === 'string' ? [] : mirrors;
    },
    /** Tells the session that made a task how it goes; false when that session is not in this daemon's memory. */
    tellTask({ session, ...about }: TaskNews): boolean {
      const found = session === undefined ? undefined : sessions.local(session, about.task.principal);
      if (found) news.task(found, about);
      return found !== undefined;
    },
    online: (nc: NatsConnection) => handover.online(nc),
    /** A server has another state, so what hosts see of it may be another. */
    changed(): void {
      scopes.changed();
      news.listsChanged();
    },
    reconfigured(): void {
      scopes.forget();
      news.listsChanged();
    },
    async close(): Promise<void> {
      news.close();
      handover.close();
      await sessions.close();
    },
  };
}
