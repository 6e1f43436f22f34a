// All doors of the daemon: the control socket, the NATS subjects, and the configuration file, whose changes come in here
// too. A change opens and closes the doors of the servers it adds and removes.

import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { NatsConnection } from 'nats';
import type { Subjects } from '../bus/subjects.ts';
import { type Difference, difference } from '../config/difference.ts';
import { watchConfig } from '../config/file/watch.ts';
import type { Config } from '../config/schema.ts';
import { openControl } from '../doors/control.ts';
import { type NatsDoor, natsDoor } from '../doors/nats.ts';
import { type NatsAsks, natsAsks } from '../doors/nats-asks.ts';
import { type NatsTasks, natsTasks } from '../doors/nats-tasks.ts';
import { pipeDoor } from '../doors/pipe.ts';
import { type RpcDoor, rpcDoor } from '../doors/rpc.ts';
import { askMethods } from '../operations/asks.ts';
import { rootMethods } from '../operations/roots.ts';
import { controlMethods } from '../operations/servers.ts';
import { environmentOf, statusOf } from '../operations/status.ts';
import { taskMethods } from '../operations/tasks.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { VERSION } from '../protocol/version.ts';
import type { Member } from '../servers/member.ts';
import { openHostDoors } from './host-doors.ts';
import { familyOf } from './leftovers.ts';
import type { PartsOptions, The } from './parts.ts';
import { readConfig } from './settings.ts';

export type DoorsOptions = PartsOptions & {
  readonly the: The;
  readonly name: string;
  readonly startedAt: number;
  readonly subjects: Subjects;
  /** The configuration in force; a reload puts the next one here. */
  readonly current: { config: Config };
};

const SETTLE_MS = 15_000;

export async function openDoors(options: DoorsOptions) {
  const { the, paths, env, log, say, name, subjects, current } = options;
  const { logger } = log;
  const [fleet, catalog, events, hosting] = [the('fleet'), the('catalog'), the('events'), the('hosting')];
  const { sessions } = hosting;
  const { asking, tasking, roots } = the('serving');
  const tasks = tasking.api;
  let door: NatsDoor | undefined;
  let rpc: RpcDoor | undefined;
  let questions: NatsAsks | undefined;
  let taskDoor: NatsTasks | undefined;
  let refused: string | undefined;

  function openNats(nc: NatsConnection): void {
    const onTrouble = (error: unknown) => logger.warn(sentence(error));
    void door?.close();
    door = natsDoor({
      ...{ nc, subjects, daemon: name, fleet, catalog, tasks },
      onProgress: (requestId, caller, signal) => {
        if (signal.type === 'progress') events.progress(requestId, caller, signal);
      },
      onTrouble,
    });
    void rpc?.close();
    rpc = rpcDoor({ nc, subjects, daemon: name, sessions, onTrouble });
    void questions?.close();
    const family = familyOf(paths.state);
    questions = natsAsks({ nc, subjects, daemon: name, family, inbox: asking.inbox, onTrouble });
    void taskDoor?.close();
    taskDoor = natsTasks({ nc, subjects, daemon: name, family, tasks, inbox: asking.inbox, onTrouble });
    for (const server of current.config.servers) door.openServer(server.name);
    for (const scope of scopesOf(current.config)) rpc.openScope(scope);
  }

  /** Applies only what differs: a server that is not touched keeps its process and its calls. */
  async function reload(): Promise<Difference> {
    const { config } = current;
    if (config.path !== undefined && !existsSync(config.path))
      throw new TroupeError('invalid', `${config.path} is gone; what runs goes on running`);
    const { config: next, warnings } = readConfig(paths, env);
    if (!isDeepStrictEqual(rootOf(options.config), rootOf(next))) logger.warn(FOR_NEXT_START);
    for (const { message } of warnings) logger.warn(message);
    const change = difference(config, next);
    await the('serving').prepare(next.servers);
    current.config = next;
    refused = undefined;
    fleet.apply(change);
    hosting.reconfigured();
    roots.refresh();
    const [before, after] = [scopesOf(config), scopesOf(next)];
    for (const server of change.added) door?.openServer(server.name);
    for (const scope of after) rpc?.openScope(scope);
    await Promise.all(change.removed.map((server) => door?.closeServer(server)));
    await Promise.all(before.filter((scope) => !after.includes(scope)).map((scope) => rpc?.closeScope(scope)));
    const { added, removed, relaunched, retuned } = change;
    const counts = {
      added: added.length,
      removed: removed.length,
      relaunched: relaunched.length,
      retuned: retuned.length,
    };
    if (Object.values(counts).some((count) => count > 0)) logger.info(counts, 'configuration applied');
    return change;
  }

  const waiting = () => (isDeepStrictEqual(rootOf(options.config), rootOf(current.config)) ? null : FOR_NEXT_START);
  const status = () =>
    statusOf({
      ...{ bus: the('bus'), store: the('store'), fleet, catalog, plugins: the('plugins').status },
      ...{ http: hosts.status, sessions: sessions.count, asks: { open: asking.count() } },
      tasks: { unfinished: tasking.unfinished() },
      daemon: {
        ...{ state: options.stateOf(), name, startedAt: options.startedAt, stateDir: paths.state },
        ...{ instance: paths.instance ?? null },
        ...{ config: current.config.path, configError: refused ?? waiting(), logFile: log.file },
      },
    });
  const environment = () => environmentOf(the('bus'), hosts.status, hosts.token);
  const methods = controlMethods({
    fleet,
    oauth: the('serving').logins,
    catalog,
    status,
    environment,
    reload,
    stop: options.stop,
    more: { ...askMethods(asking.inbox), ...taskMethods(tasks), ...rootMethods(roots) },
  });
  const onFault = (error: unknown) => logger.error(sentence(error));
  const hosts = await openHostDoors(options, hosting);
  const control = await openControl(paths.socket, fleet, methods, pipeDoor(sessions, onFault));
  const watcher = watchConfig(paths.config, () => {
    reload().catch((error) => {
      refused = sentence(error);
      logger.error(`the configuration was not applied: ${refused}`);
    });
  });
  const isOpening = ({ server, state }: Member) =>
    state === 'opening' || (state === 'ready' && !catalog.get(server, 'tools').isFresh);
  void settled(() => fleet.members(), isOpening).then((members) => {
    const tools = ({ server }: Member) => catalog.get(server, 'tools').entries.length;
    say.started({
      version: VERSION,
      ...{ bus: the('bus').status(), http: hosts.status, members, tools },
      ...{ config: current.config.path, logFile: log.file },
    });
  });

  return {
    openNats,
    async close(): Promise<void> {
      await Promise.all([
        watcher.close(),
        control.close(),
        door?.close(),
        rpc?.close(),
        questions?.close(),
        taskDoor?.close(),
        hosts.close(),
      ]);
    },
  };
}

/** The endpoints beside that of all servers. */
const scopesOf = ({ servers, profiles }: Config): string[] => [
  ...servers.map(({ name }) => name),
  ...Object.keys(profiles).map((profile) => `@${profile}`),
];

const FOR_NEXT_START =
  'the root x-troupe has changed (nats, http, plugins, requests or logLevel); that takes effect at the next start';

/** What is read once, at the start. */
const rootOf = ({ nats, plugins, requests, logLevel, http }: Config) => [nats, plugins, requests, logLevel, http];

/** The first word to a person waits until every server has shown what becomes of it. */
async function settled(members: () => Member[], isOpening: (member: Member) => boolean): Promise<Member[]> {
  const deadline = performance.now() + SETTLE_MS;
  while (members().some(isOpening) && performance.now() < deadline) await wait(50);
  return members();
}
