// All doors of the daemon: the control socket, the NATS subjects, HTTP for hosts, and the configuration file, whose changes
// come in here too. What the NATS door offers follows the configuration, and is given up before a server is removed.

import { setTimeout as wait } from 'node:timers/promises';
import type { NatsConnection } from 'nats';
import type { Bus } from '../bus/bus.ts';
import type { Events } from '../bus/events.ts';
import type { Config } from '../config/schema.ts';
import { type ControlDoor, openControl } from '../doors/control.ts';
import { type NatsDoor, natsDoor, type Offer } from '../doors/nats/door.ts';
import { pipeDoor } from '../doors/pipe.ts';
import type { Ports } from '../operations/operations.ts';
import { untilNews } from '../operations/servers.ts';
import { environmentOf, type LimitsStatus, type Status, statusOf } from '../operations/status.ts';
import { sentence } from '../protocol/failures.ts';
import { VERSION } from '../protocol/version.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import { meaningOf } from '../servers/states.ts';
import type { Store } from '../store/store.ts';
import { openDescriptors, residentBytes } from '../world/limits.ts';
import { realWorld } from '../world/world.ts';
import type { Configuration, Reloading } from './configuration.ts';
import { type HostDoors, openHostDoors } from './host-doors.ts';
import { familyOf } from './leftovers.ts';
import type { SharedOptions } from './options.ts';
import type { PluginHost } from './plugins.ts';
import type { Serving } from './serving.ts';

export type Doors = Awaited<ReturnType<typeof openDoors>>;

/** A broker that is away must not hold up a reload: no call can come over it either. */
const WITHDRAW_MS = 1_000;
const SETTLE_MS = 15_000;

export type DoorsParts = {
  readonly serving: Serving;
  readonly bus: Bus;
  readonly store: Store;
  readonly events: Events;
  readonly plugins: PluginHost;
};

export async function openDoors(options: SharedOptions, parts: DoorsParts) {
  const { configuration, paths, log } = options;
  const { serving, bus, events } = parts;
  const { sessions } = serving.hosting;
  let nats: NatsDoor | undefined;
  const reloading = reloadingOf(serving, configuration, (offer) => nats?.offer(offer));
  const hosts = await openHostDoors(options, serving.hosting);
  const ports: Ports = {
    fleet: serving.fleet,
    catalog: serving.catalog,
    inbox: serving.asking.inbox,
    tasks: serving.tasking.api,
    roots: serving.roots,
    oauth: serving.logins,
    status: () => covered(statusHere(options, parts, hosts), log.mask),
    environment: () => environmentOf(bus, hosts.status, hosts.token),
    reload: () => configuration.reload(reloading),
    stop: options.stop,
  };
  const onFault = (error: unknown) => log.logger.error(sentence(error));
  const mcp = pipeDoor({ world: realWorld, sessions, onFault });
  const control: ControlDoor = await openControl({
    path: paths.socket,
    ports,
    mcp,
    maxConnections: options.shares.control,
  });
  const watcher = configuration.watch(reloading);
  void announce(options, parts, hosts);

  return {
    /** The door of an earlier connection is closed: subscriptions belong to their connection. */
    openNats(nc: NatsConnection): void {
      void nats?.close();
      nats = natsDoor({
        nc,
        subjects: options.subjects,
        daemon: options.name,
        family: familyOf(paths.state),
        ports,
        sessions,
        onProgress(requestId, caller, signal) {
          if (signal.type === 'progress') events.progress(requestId, caller, signal);
        },
        onTrouble: (error) => log.logger.warn(sentence(error)),
      });
      void nats.offer(offerOf(configuration.current));
    },
    async close(): Promise<void> {
      await Promise.all([watcher.close(), control.close(), nats?.close(), hosts.close()]);
    },
  };
}

/**
 * The subjects of removed servers are given up before the fleet hears of the removal: whoever calls next hears that nobody
 * listens, and never meets a server on its way out.
 */
function reloadingOf(
  { fleet, hosting, roots, prepare }: Serving,
  configuration: Configuration,
  offer: (offer: Offer) => Promise<void> | undefined,
): Reloading {
  return {
    async prepare(next) {
      await prepare(next.servers);
      const [now, then] = [offerOf(configuration.current), offerOf(next)];
      const kept = {
        servers: now.servers.filter((server) => then.servers.includes(server)),
        profiles: now.profiles.filter((profile) => then.profiles.includes(profile)),
      };
      await Promise.race([offer(kept), wait(WITHDRAW_MS, undefined, { ref: false })]);
    },
    apply(next, change) {
      fleet.apply(change);
      hosting.reconfigured();
      roots.refresh();
      void offer(offerOf(next));
    },
  };
}

const offerOf = ({ servers, profiles }: Config): Offer => ({
  servers: servers.map(({ name }) => name),
  profiles: Object.keys(profiles).map((profile) => `@${profile}`),
});

function statusHere(options: SharedOptions, { serving, bus, store, plugins }: DoorsParts, hosts: HostDoors): Status {
  const { paths, configuration } = options;
  const { fleet, catalog, hosting, asking, tasking } = serving;
  return statusOf({
    bus,
    store,
    fleet,
    catalog,
    plugins: plugins.status,
    http: hosts.status,
    sessions: hosting.sessions.count,
    asks: { open: asking.count() },
    tasks: { unfinished: tasking.unfinished() },
    limits: limitsHere(options, fleet, hosts),
    daemon: {
      state: options.stateOf(),
      name: options.name,
      startedAt: options.startedAt,
      stateDir: paths.state,
      instance: paths.instance ?? null,
      config: configuration.current.path,
      configError: configuration.trouble,
      logFile: options.log.file,
      memoryBytes: residentBytes() ?? null,
    },
  });
}

function limitsHere({ limits, shares }: SharedOptions, fleet: Fleet, hosts: HostDoors): LimitsStatus {
  const running = fleet.members().filter(({ state }) => !meaningOf(state).isAtRest);
  return {
    descriptors: { used: openDescriptors() ?? null, most: finite(limits.descriptors) },
    hosts: hosts.connections() ?? { used: 0, most: shares.hosts },
    servers: { used: running.length, most: finite(shares.servers) },
  };
}

const finite = (most: number): number | null => (Number.isFinite(most) ? most : null);

/** Reasons of failures may quote what was configured. */
const covered = (status: Status, mask: (text: string) => string): Status =>
  JSON.parse(JSON.stringify(status, (_, value) => (typeof value === 'string' ? mask(value) : value)));

/** The first word to a person waits until every server has shown what becomes of it. */
async function announce(options: SharedOptions, { serving, bus }: DoorsParts, hosts: HostDoors): Promise<void> {
  const { fleet, catalog } = serving;
  const isOpening = ({ server, state }: Member) =>
    state === 'opening' || (state === 'ready' && !catalog.get(server, 'tools').isFresh);
  await untilNews([fleet.watch, catalog.watch], () => !fleet.members().some(isOpening), SETTLE_MS);
  options.say.started({
    version: VERSION,
    bus: bus.status(),
    http: hosts.status,
    members: fleet.members(),
    tools: ({ server }) => catalog.get(server, 'tools').entries.length,
    config: options.configuration.current.path,
    logFile: options.log.file,
  });
}
