// The parts of the daemon, and how each is opened and closed. The daemon's machine decides the order; here is only how they
// are put together.

import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import type { NatsConnection } from 'nats';
import { fromPromise } from 'xstate';
import { createBudget } from '../asks/models/budget.ts';
import { createModels, type Models } from '../asks/models/models.ts';
import { type Bus, createBus } from '../bus/bus.ts';
import { createEvents, type Events } from '../bus/events.ts';
import { outbox } from '../bus/outbox.ts';
import { subjects } from '../bus/subjects.ts';
import { daemonName } from '../config/names.ts';
import { inUrl, secretsOf } from '../config/secrets.ts';
import { readOwn, writeOwn } from '../files/own.ts';
import { sentence } from '../protocol/failures.ts';
import { VERSION } from '../protocol/version.ts';
import { endStrays, noteLife } from '../servers/stdio/sweep.ts';
import { type Clock, openClock } from '../store/clock.ts';
import { openStore, type Store } from '../store/store.ts';
import { readLimits, sharesOf } from '../world/limits.ts';
import { createConfiguration } from './configuration.ts';
import { type Doors, openDoors } from './doors.ts';
import { sweepLeftovers } from './leftovers.ts';
import type { PartsOptions, SharedOptions } from './options.ts';
import { type PluginHost, pluginView, startPlugins } from './plugins.ts';
import { createServing, type Serving } from './serving.ts';

/** What exists once its part is open. */
type Built = {
  store: Store;
  /** When what earlier lives left is ended, and this life is written down. */
  alone: Promise<void>;
  /** Takes back that this life is written down. */
  forgetLife: () => void;
  clock: Clock;
  events: Events;
  bus: Bus;
  /** The connection to NATS, while there is or was one. */
  nc: NatsConnection;
  models: Models;
  plugins: PluginHost;
  serving: Serving;
  doors: Doors;
  heart: NodeJS.Timeout;
};
/** Throws for a part that is not open yet: the daemon's machine opens them in order. */
type PartOf = <Name extends keyof Built>(name: Name) => Built[Name];

export type Assembly = SharedOptions & {
  readonly built: Partial<Built>;
  readonly part: PartOf;
  /** Plugins that watch servers; they are there before the servers are. */
  readonly watchers: Set<(server: string) => void>;
};

const HEARTBEAT_MS = 5_000;

export function assemble(options: PartsOptions): Assembly {
  const { paths, env, log, config } = options;
  const built: Partial<Built> = {};
  const limits = readLimits();
  return {
    ...options,
    limits,
    shares: sharesOf(limits),
    name: daemonName(hostname(), paths.instance),
    startedAt: Date.now(),
    subjects: subjects(config.nats.subject),
    configuration: createConfiguration({
      paths,
      env,
      logger: log.logger,
      config,
      onRead: (next) => log.secrets.learn(secretsOf(next, env)),
    }),
    built,
    part(wanted) {
      const found = built[wanted];
      if (!found) throw new Error(`${wanted} is not there yet`);
      return found as never;
    },
    watchers: new Set(),
  };
}

/** What the daemon's machine calls to open and close each part. */
export function actorsOf(assembly: Assembly) {
  const { built } = assembly;
  const actor = (work: (assembly: Assembly) => Promise<void> | void) => fromPromise<void>(async () => work(assembly));
  return {
    openStore: actor(openStorePart),
    openBus: actor(openBus),
    openPlugins: actor(openPlugins),
    openServers: actor(openServers),
    openDoors: actor(openDoorsPart),
    closeDoors: actor(closeDoors),
    closeServers: actor(closeServers),
    closePlugins: actor(async () => built.plugins?.close()),
    closeBus: actor(async () => built.bus?.leave()),
    closeStore: actor(closeStore),
  };
}

async function openStorePart(assembly: Assembly): Promise<void> {
  const { paths, log, built } = assembly;
  const { logger } = log;
  const store = await openStore(paths.database, { onFault: (write, why) => logger.error(`${write}: ${why}`) });
  built.store = store;
  store.onHealth(({ state, message }) =>
    logger[state === 'ready' || state === 'closed' ? 'info' : 'error']({ store: state }, message),
  );
  built.clock = await openClock(store);
  built.alone = endEarlierLives(assembly, store);
  built.alone.catch(() => {}); // is told to whoever waits for it, before servers are started
}

async function endEarlierLives({ paths, mark, log, built }: Assembly, store: Store): Promise<void> {
  const swept = await sweepLeftovers(store, paths);
  if (swept.length > 0) log.logger.warn({ swept }, 'ended processes that an earlier daemon had left behind');
  built.forgetLife = await noteLife(store, paths.lock, mark);
}

/** Not waited for: a nats-server takes its time, and servers can start meanwhile. */
function openBus({ name, paths, env, config, log, say, subjects, built, part, crash }: Assembly): void {
  const { logger } = log;
  const events = createEvents(subjects, outbox(part('store')), (error) => logger.warn(sentence(error)));
  built.events = events;
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
      log.secrets.learn(loginOf(part('bus')));
      events.online(nc);
      built.serving?.online(nc);
      built.doors?.openNats(nc);
    },
    onReconnect: events.online,
    beforeDrain: events.close,
    onCrash: crash,
  });
  built.bus.start();
}

/** The token or password by which the bus lets us in, if it is one that an address can hold. */
function loginOf(bus: Bus): readonly string[] {
  try {
    return inUrl(bus.environment().NATS_URL ?? '');
  } catch {
    return []; // a key or a file of credentials, which is never said
  }
}

async function openPlugins({ config, log, built, part, watchers }: Assembly): Promise<void> {
  const { logger } = log;
  const models = createModels({ budget: createBudget(part('store')), logger });
  built.models = models;
  const root = config.nats.subject;
  const viewFor = (plugin: string) =>
    pluginView({ plugin, serving: () => part('serving'), events: part('events'), models, log, watchers, root });
  built.plugins = await startPlugins(config.plugins, viewFor, logger);
}

async function openServers(assembly: Assembly): Promise<void> {
  const { config, say, built, part, watchers } = assembly;
  const serving = createServing(assembly, {
    store: part('store'),
    clock: part('clock'),
    events: part('events'),
    models: part('models'),
  });
  const { fleet } = serving;
  built.serving = serving;
  fleet.watch((member) => {
    if (member.first) return; // the first process of a pool stands for them all
    say.changed(member);
    for (const watcher of watchers) watcher(member.name);
  });
  fleet.start();
  await serving.prepare(config.servers);
  await serving.asking.start();
  await part('alone');
  for (const server of config.servers) fleet.launch(server);
  await serving.tasking.start();
}

/** While the doors are open, a note in the state directory says who runs. */
async function openDoorsPart(assembly: Assembly): Promise<void> {
  const { name, paths, built, part } = assembly;
  await part('bus').tried();
  writeOwn(paths.note, noteOf(assembly)); // first: a disk that refuses it must do so before anybody is told that we run
  const doors = await openDoors(assembly, {
    serving: part('serving'),
    bus: part('bus'),
    store: part('store'),
    events: part('events'),
    plugins: part('plugins'),
  });
  built.doors = doors;
  if (built.nc) part('serving').online(built.nc);
  if (built.nc) doors.openNats(built.nc);
  built.heart = setInterval(() => {
    part('events').heartbeat(name, { daemon: name, ts: Date.now(), interval_s: HEARTBEAT_MS / 1000 });
    for (const { subscriptions } of part('serving').fleet.members()) void subscriptions.expire();
  }, HEARTBEAT_MS).unref();
}

const noteOf = ({ paths, startedAt }: Assembly): string =>
  JSON.stringify({ pid: process.pid, version: VERSION, startedAt, socket: paths.socket });

/** A note that another daemon has written is not ours to remove: the directory was replaced. */
function removeNote(assembly: Assembly): void {
  const { note } = assembly.paths;
  if (String(readOwn(note)) === noteOf(assembly)) rmSync(note, { force: true });
}

async function closeDoors(assembly: Assembly): Promise<void> {
  const { heart, serving, doors } = assembly.built;
  clearInterval(heart);
  serving?.tasking.stopWaiting();
  await serving?.tasking.leave(); // first, or a task that waits for an approval would not get it
  serving?.asking.close(); // or the doors would wait for calls that wait for people
  await doors?.close();
  removeNote(assembly);
}

async function closeServers({ mark, log, built }: Assembly): Promise<void> {
  await built.serving?.close();
  const runaways = await endStrays(mark);
  if (runaways.length > 0) log.logger.warn({ runaways }, 'ended processes that had left the group of their server');
}

async function closeStore({ built: { clock, store, forgetLife } }: Assembly): Promise<void> {
  forgetLife?.();
  clock?.close();
  await store?.close();
}
