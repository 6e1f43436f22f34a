// The parts of the daemon, each with its way up and its way down. The daemon's machine decides the order; here is only
// how they are put together.

import { hostname } from 'node:os';
import type { NatsConnection } from 'nats';
import { createBudget } from '../asks/models/budget.ts';
import { createModels, type Models } from '../asks/models/models.ts';
import { type Bus, createBus } from '../bus/bus.ts';
import { createEvents, type Events } from '../bus/events.ts';
import { outbox } from '../bus/outbox.ts';
import { subjects } from '../bus/subjects.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { daemonName } from '../config/names.ts';
import type { Paths } from '../config/paths.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import { endMarked } from '../servers/sweep.ts';
import type { Hosting } from '../sessions/hosting.ts';
import { type Clock, openClock } from '../store/clock.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Announcer } from './announce.ts';
import { openDoors } from './doors.ts';
import { markerOf, sweepLeftovers } from './leftovers.ts';
import { type PluginHost, startPlugins } from './plugin-host.ts';
import { pluginView } from './plugin-view.ts';
import { createServing, type Serving } from './serving.ts';

export type PartsOptions = {
  readonly paths: Paths;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly config: Config;
  readonly say: Announcer;
  /** What `up --http` was given. */
  readonly http?: string;
  readonly stop: () => void;
  readonly crash: (why: string) => void;
  readonly stateOf: () => string;
};
export type Parts = ReturnType<typeof createParts>;

/** What exists once its part is open. */
export type Built = {
  store: Store;
  clock: Clock;
  bus: Bus;
  events: Events;
  models: Models;
  plugins: PluginHost;
  catalog: Catalog;
  fleet: Fleet;
  serving: Serving;
  hosting: Hosting;
  doors: Awaited<ReturnType<typeof openDoors>>;
  nc: NatsConnection;
};
export type The = <Name extends keyof Built>(name: Name) => Built[Name];

const HEARTBEAT_MS = 5_000;

export function createParts(options: PartsOptions) {
  const { paths, env, log, config, say, crash } = options;
  const { logger } = log;
  const name = daemonName(hostname(), paths.instance);
  const marker = markerOf(paths);
  const startedAt = Date.now();
  const subject = subjects(config.nats.subject);
  const current = { config };
  const built: Partial<Built> = {};
  const the: The = (part) => {
    const found = built[part];
    if (!found) throw new Error(`${part} is not there yet`);
    return found as never;
  };
  const watchers = new Set<(server: string) => void>();
  let heart: NodeJS.Timeout | undefined;

  return {
    startedAt,

    async openStore(): Promise<void> {
      built.store = await openStore(paths.database, { onFault: (why) => logger.error(String(why)) });
      built.store.onHealth(({ state, message }) =>
        logger[state === 'ready' || state === 'closed' ? 'info' : 'error']({ store: state }, message),
      );
      built.clock = await openClock(built.store);
      const swept = await sweepLeftovers(built.store, paths);
      if (swept.length > 0) logger.warn({ swept }, 'ended processes that an earlier daemon had left behind');
    },

    /** Not waited for: a nats-server takes its time, and servers can start meanwhile. */
    openBus(): void {
      built.events = createEvents(subject, outbox(the('store')), (error) => logger.warn(sentence(error)));
      built.bus = createBus({
        ...{ name: `troupe ${name}`, env, directory: paths.broker, user: paths.lock, cache: paths.cache },
        ...{ nats: config.nats, logger },
        onFetch: say.waiting,
        onConnection(nc) {
          built.nc = nc;
          the('events').online(nc);
          built.serving?.online(nc);
          built.doors?.openNats(nc);
        },
        onReconnect: (nc) => the('events').online(nc),
        beforeDrain: () => the('events').close(),
        onCrash: crash,
      });
      built.bus.start();
    },

    async openPlugins(): Promise<void> {
      const models = createModels({ budget: createBudget(the('store')), logger });
      built.models = models;
      const root = config.nats.subject;
      const viewFor = (plugin: string) => pluginView({ plugin, the, models, log, watchers, root });
      built.plugins = await startPlugins(config.plugins, viewFor, logger);
    },

    async openServers(): Promise<void> {
      const serving = createServing({
        ...{ ...options, name, store: the('store'), events: the('events'), subjects: subject },
        models: the('models'),
        clock: the('clock'),
        current: () => current.config,
        onState(member) {
          say.changed(member);
          for (const watcher of watchers) watcher(member.name);
        },
      });
      const { catalog, fleet, hosting } = serving;
      Object.assign(built, { catalog, fleet, hosting, serving });
      await serving.prepare(config.servers);
      await serving.asking.start();
      fleet.start();
      for (const server of config.servers) fleet.launch(server);
      await serving.tasking.start();
    },

    async openDoors(): Promise<void> {
      await the('bus').tried();
      built.doors = await openDoors({ ...options, the, name, startedAt, subjects: subject, current });
      if (built.nc) the('serving').online(built.nc);
      if (built.nc) built.doors.openNats(built.nc);
      const beat = () => {
        the('events').heartbeat(name, { daemon: name, ts: Date.now(), interval_s: HEARTBEAT_MS / 1000 });
        for (const { subscriptions } of the('fleet').members()) void subscriptions.expire();
      };
      heart = setInterval(beat, HEARTBEAT_MS);
      heart.unref();
    },

    async closeDoors(): Promise<void> {
      clearInterval(heart);
      built.serving?.tasking.stopWaiting();
      await built.serving?.tasking.leave(); // first, or a task that waits for an approval would not get it
      built.serving?.asking.close(); // or the doors would wait for calls that wait for people
      await built.doors?.close();
    },

    async closeServers(): Promise<void> {
      await built.hosting?.close();
      built.serving?.close();
      await built.fleet?.stop();
      await built.serving?.tasking.close();
      const runaways = await endMarked(marker);
      if (runaways.length > 0) logger.warn({ runaways }, 'ended processes that had left the group of their server');
    },

    closePlugins: async () => built.plugins?.close(),
    closeBus: async () => built.bus?.leave(),
    async closeStore(): Promise<void> {
      built.clock?.close();
      await built.store?.close();
    },

    /** What a daemon that ends without a goodbye must still not leave behind. */
    abandon: () => built.bus?.abandon(),
  };
}
