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
import { daemonName } from '../config/names.ts';
import type { Paths } from '../config/paths.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import { endMarked } from '../servers/sweep.ts';
import { type Clock, openClock } from '../store/clock.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Announcer } from './announce.ts';
import { createConfiguration } from './configuration.ts';
import { type Doors, openDoors } from './doors.ts';
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
/** What exists once its part is open. */
export type Built = {
  store: Store;
  clock: Clock;
  events: Events;
  bus: Bus;
  /** The connection to NATS, while there is or was one. */
  nc: NatsConnection;
  models: Models;
  plugins: PluginHost;
  serving: Serving;
  doors: Doors;
};
/** Throws for a part that is not open yet: the daemon's machine opens them in order. */
export type PartOf = <Name extends keyof Built>(name: Name) => Built[Name];
export type Parts = ReturnType<typeof createParts>;

const HEARTBEAT_MS = 5_000;

export function createParts(options: PartsOptions) {
  const { paths, env, log, config, say, crash } = options;
  const { logger } = log;
  const name = daemonName(hostname(), paths.instance);
  const startedAt = Date.now();
  const subject = subjects(config.nats.subject);
  const configuration = createConfiguration({ paths, env, logger, config });
  const built: Partial<Built> = {};
  const part: PartOf = (wanted) => {
    const found = built[wanted];
    if (!found) throw new Error(`${wanted} is not there yet`);
    return found as never;
  };
  /** Plugins are there before the servers that they watch. */
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
      built.events = createEvents(subject, outbox(part('store')), (error) => logger.warn(sentence(error)));
      built.bus = createBus({
        name: `troupe ${name}`,
        env,
        directory: paths.broker,
        user: paths.lock,
        cache: paths.cache,
        nats: config.nats,
        logger,
        onFetch: say.waiting,
        onConnection(nc) {
          built.nc = nc;
          part('events').online(nc);
          built.serving?.online(nc);
          built.doors?.openNats(nc);
        },
        onReconnect: (nc) => part('events').online(nc),
        beforeDrain: () => part('events').close(),
        onCrash: crash,
      });
      built.bus.start();
    },

    async openPlugins(): Promise<void> {
      const models = createModels({ budget: createBudget(part('store')), logger });
      built.models = models;
      const root = config.nats.subject;
      const viewFor = (plugin: string) => pluginView({ plugin, part, models, log, watchers, root });
      built.plugins = await startPlugins(config.plugins, viewFor, logger);
    },

    async openServers(): Promise<void> {
      const serving = createServing({
        ...options,
        name,
        store: part('store'),
        clock: part('clock'),
        events: part('events'),
        subjects: subject,
        models: part('models'),
        current: () => configuration.current,
      });
      built.serving = serving;
      serving.fleet.watch((member) => {
        if (member.first) return; // the first process of a pool stands for them all
        say.changed(member);
        for (const watcher of watchers) watcher(member.name);
      });
      serving.fleet.start();
      await serving.prepare(config.servers);
      await serving.asking.start();
      for (const server of config.servers) serving.fleet.launch(server);
      await serving.tasking.start();
    },

    async openDoors(): Promise<void> {
      await part('bus').tried();
      built.doors = await openDoors({ ...options, part, name, startedAt, subjects: subject, configuration });
      if (built.nc) part('serving').online(built.nc);
      if (built.nc) built.doors.openNats(built.nc);
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
      await built.serving?.close();
      const runaways = await endMarked(markerOf(paths));
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

  function beat(): void {
    part('events').heartbeat(name, { daemon: name, ts: Date.now(), interval_s: HEARTBEAT_MS / 1000 });
    for (const { subscriptions } of part('serving').fleet.members()) void subscriptions.expire();
  }
}
