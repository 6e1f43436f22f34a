// Everything that serves hosts' sessions, put together: their rows and streams, what they see, what they are told, and the
// way to the other daemons on this state directory.

import type { NatsConnection } from 'nats';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config/schema.ts';
import type { Roots } from '../roots/roots.ts';
import type { Audience } from '../servers/attribution.ts';
import type { Fleet } from '../servers/fleet.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Member } from '../servers/member.ts';
import { type Mirror, mirrorsOf } from '../servers/remote/mirrored.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { TaskNews, Tasks } from '../tasks/task.ts';
import type { World } from '../world/world.ts';
import { createHandover } from './handover.ts';
import type { HostSession } from './host.ts';
import { foreignCapabilities } from './initialize.ts';
import { createFirstLists } from './lists.ts';
import type { Attend, SessionPorts } from './ports.ts';
import { createScopes } from './scopes.ts';
import type { LocalSession } from './session.ts';
import { createSessions, type LocalSessions } from './sessions.ts';
import { createStreams } from './streams.ts';

export type HostingOptions = {
  readonly world: World;
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
  const { world, config, fleet, catalog, store, seal, daemon, isAlive, family, onTrouble } = options;
  const { maxSessions, maxStreams, sessionIdleMs: idleMs } = config().http;
  const scopes = createScopes({ config, fleet, catalog });
  const streams = createStreams({ world, store, seal, daemon, isAlive, maxStreams, onTrouble });
  const firstLists = createFirstLists({ world, fleet, catalog });
  const handover = createHandover({ ...options, local: (id, principal) => sessions.local(id, principal) });
  const ports: SessionPorts = {
    world,
    fleet,
    catalog,
    store,
    scopes,
    streams,
    roots: options.roots,
    tasks: options.tasks,
    attend: options.attend,
    firstList: firstLists.wait,
    setLevels: options.setLevels,
    handOver: handover.handOver,
  };
  const sessions: LocalSessions = createSessions({ ports, maxSessions, idleMs, family, onTrouble });
  const news = createNews(world, sessions.residents, onTrouble);

  return {
    sessions,
    news,
    /** What a tool wants repeated in headers, by the name this host has for it. */
    declarations({ id, principal }: HostSession, tool: string): readonly Mirror[] {
      const definition = sessions.local(id, principal)?.definitionOf(tool);
      const mirrors = definition ? mirrorsOf(definition) : [];
      return typeof mirrors === 'string' ? [] : mirrors;
    },
    /** What the host declares that a process serves alone; nothing for one that others may share. */
    foreignCapabilities({ principal }: Member): object {
      const found = sessions.residents().find(({ identity }) => sessionHolder(identity.id) === principal);
      return found ? foreignCapabilities(found.identity.capabilities) : {};
    },
    /** Tells the session that made a task how it goes; false when that session is not in this daemon's memory. */
    tellTask({ session, ...about }: TaskNews): boolean {
      const found = session === undefined ? undefined : sessions.local(session, about.task.principal);
      if (found) news.task(found, about);
      return found !== undefined;
    },
    /** A task that outlived its session, or was adopted without it, may have had a process of its own. */
    taskGone(session: string): void {
      if (!sessions.isResident(session) && !options.tasks.isRunningFor(session)) fleet.release(session);
    },
    online: (nc: NatsConnection) => handover.online(nc),
    /** A server has another state, so what hosts see of it may be another. */
    changed(): void {
      scopes.changed();
      firstLists.changed();
      news.listsChanged();
    },
    reconfigured(): void {
      scopes.forget();
      news.listsChanged();
    },
    async close(): Promise<void> {
      news.close();
      handover.close();
      firstLists.close();
      await sessions.close();
    },
  };
}

/** A server that starts has four new lists within this time, and hosts are told once. */
const GATHER_MS = 20;

/**
 * What servers say unasked, on its way to the hosts that it concerns: those whose endpoint shows that server, and whose calls
 * go to that very process.
 */
function createNews(world: World, sessions: () => Iterable<LocalSession>, onTrouble: (error: unknown) => void) {
  let stopGathering: (() => void) | undefined;

  function tellAll(): void {
    stopGathering = undefined;
    for (const session of sessions()) attempt(() => session.tellChanges());
  }

  /** What goes wrong for one host must not keep the news from the others. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      onTrouble(error);
    }
  }

  return {
    listsChanged(): void {
      stopGathering ??= world.after(GATHER_MS, tellAll);
    },
    updated(member: Member, uri: string, params: Buffer): void {
      for (const session of sessions()) attempt(() => session.tellUpdate(member, uri, params));
    },
    log(member: Member, level: string, params: Buffer, audience: Audience): void {
      if (audience.to === 'caller' || audience.to === 'nobody') return;
      for (const session of sessions()) {
        const isMeant = audience.to !== 'session' || audience.session === session.identity.id;
        if (isMeant) attempt(() => session.tellLog(member, level, params));
      }
    },
    foreign(member: Member, method: string, params: Buffer, audience: Audience): void {
      if (audience.to === 'caller' || audience.to === 'nobody') return;
      for (const session of sessions()) {
        const isMeant = audience.to !== 'session' || audience.session === session.identity.id;
        if (isMeant) attempt(() => session.tellForeign(member, method, params));
      }
    },
    task: (session: LocalSession, about: Omit<TaskNews, 'session'>): void => attempt(() => session.tellTask(about)),
    levelsFor: (member: Member) =>
      [...sessions()].flatMap((session) => {
        const level = session.level();
        return level && session.isServedBy(member) ? [level] : [];
      }),
    close: () => stopGathering?.(),
  };
}
