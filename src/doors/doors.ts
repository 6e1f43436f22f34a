// All doors of the daemon: the control socket, the NATS subjects, and the configuration file, whose changes come in here
// too. A change opens and closes the doors of the servers it adds and removes.

import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { NatsConnection } from 'nats';
import type { Subjects } from '../bus/subjects.ts';
import { type Difference, difference } from '../config/difference.ts';
import type { Config } from '../config/schema.ts';
import { watchConfig } from '../config/watch.ts';
import { sentence, TroupeError } from '../failures.ts';
import type { PartsOptions, The } from '../parts.ts';
import type { Member } from '../servers/member.ts';
import { readConfig } from '../settings.ts';
import { statusOf } from '../status.ts';
import { VERSION } from '../version.ts';
import { openControl } from './control.ts';
import { controlMethods } from './methods.ts';
import { type NatsDoor, natsDoor } from './nats.ts';

export type DoorsOptions = PartsOptions & {
  readonly the: The;
  readonly name: string;
  readonly startedAt: number;
  readonly subjects: Subjects;
};

const SETTLE_MS = 15_000;

export async function openDoors(options: DoorsOptions) {
  const { the, paths, env, log, say, name, subjects } = options;
  const { logger } = log;
  const [cast, catalog, events] = [the('cast'), the('catalog'), the('events')];
  let config: Config = options.config;
  let door: NatsDoor | undefined;
  let refused: string | undefined;

  function openNats(nc: NatsConnection): void {
    void door?.close();
    door = natsDoor({
      ...{ nc, subjects, daemon: name, cast, catalog },
      onProgress: (requestId, caller, signal) => {
        if (signal.type === 'progress') events.progress(requestId, caller, signal);
      },
      onTrouble: (error) => logger.warn(sentence(error)),
    });
    for (const server of config.servers) door.openServer(server.name);
  }

  /** Applies only what differs: a server that is not touched keeps its process and its calls. */
  async function reload(): Promise<Difference> {
    if (config.path !== undefined && !existsSync(config.path))
      throw new TroupeError('invalid', `${config.path} is gone; what runs goes on running`);
    const { config: next, warnings } = readConfig(paths, env);
    if (!isDeepStrictEqual(rootOf(config), rootOf(next)))
      logger.warn(
        'the root x-troupe has changed (nats, plugins, requests or logLevel); it takes effect at the next start',
      );
    for (const { message } of warnings) logger.warn(message);
    const change = difference(config, next);
    config = next;
    refused = undefined;
    cast.apply(change);
    for (const server of change.added) door?.openServer(server.name);
    await Promise.all(change.removed.map((server) => door?.closeServer(server)));
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

  const status = () =>
    statusOf({
      ...{ bus: the('bus'), store: the('store'), cast, catalog, plugins: the('plugins').status },
      daemon: {
        ...{ state: options.stateOf(), name, startedAt: options.startedAt, stateDir: paths.state },
        ...{ config: config.path, configError: refused ?? null, logFile: log.file },
      },
    });
  const environment = () => the('bus').environment();
  const methods = controlMethods({ cast, catalog, status, environment, reload, stop: options.stop });
  const control = await openControl(paths.socket, cast, methods);
  const watcher = watchConfig(paths.config, () => {
    reload().catch((error) => {
      refused = sentence(error);
      logger.error(`the configuration was not applied: ${refused}`);
    });
  });
  const isOpening = ({ server, state }: Member) =>
    state === 'opening' || (state === 'ready' && !catalog.get(server, 'tools').isFresh);
  void settled(() => cast.members(), isOpening).then((members) => {
    const tools = ({ server }: Member) => catalog.get(server, 'tools').entries.length;
    say.started({ version: VERSION, bus: the('bus').status(), members, tools, config: config.path, logFile: log.file });
  });

  return {
    openNats,
    async close(): Promise<void> {
      await Promise.all([watcher.close(), control.close(), door?.close()]);
    },
  };
}

/** What is read once, at the start. */
const rootOf = ({ nats, plugins, requests, logLevel }: Config) => [nats, plugins, requests, logLevel];

/** The first word to a person waits until every server has shown what becomes of it. */
async function settled(members: () => Member[], isOpening: (member: Member) => boolean): Promise<Member[]> {
  const deadline = performance.now() + SETTLE_MS;
  while (members().some(isOpening) && performance.now() < deadline) await wait(50);
  return members();
}
