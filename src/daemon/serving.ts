// The servers and the hosts' sessions put together: what a server says goes to its callers, to the sessions that it
// concerns, and to the bus.

import type { NatsConnection } from 'nats';
import { type Asking, createAsking } from '../asks/asking.ts';
import { createAttend } from '../asks/host.ts';
import type { Models } from '../asks/models/models.ts';
import { createPermissions } from '../asks/waiting/permissions.ts';
import type { Events } from '../bus/events.ts';
import { createRecorder } from '../calls/record.ts';
import { type Catalog, createCatalog } from '../catalog/catalog.ts';
import type { Paths } from '../config/paths.ts';
import type { ServerConfig } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { answerRoots, createRoots } from '../roots/roots.ts';
import { Fleet } from '../servers/fleet.ts';
import { createLists } from '../servers/lists.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';
import { hasRemote, loadRemote } from '../servers/remote/loader.ts';
import { Upkeep } from '../servers/upkeep.ts';
import { createHosting, type Hosting } from '../sessions/hosting.ts';
import type { Clock } from '../store/clock.ts';
import { isHeld } from '../store/lock.ts';
import { openSeal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import { createTasking, type Tasking } from '../tasks/tasking.ts';
import { realWorld } from '../world/world.ts';
import { familyOf } from './leftovers.ts';
import type { SharedOptions } from './options.ts';

export type Serving = ReturnType<typeof createServing>;

export type ServingParts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Events;
  readonly models: Models;
};

export function createServing(options: SharedOptions, { store, clock, events, models }: ServingParts) {
  const { paths, env, log, config, mark, subjects, name, configuration, crash } = options;
  const current = () => configuration.current;
  const { logger } = log;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const identity = identityOf(paths);
  const shared = { ...identity, config: current, store, events, subjects, name, logger };
  const catalog = createCatalog(store);
  const upkeep = upkeepOf(catalog, events, { hosting: () => hosting, asking: () => asking });
  const roots = createRoots({ config: current, store, logger });
  const asking = createAsking({
    ...shared,
    instance: paths.instance,
    models,
    rootsFor: (member) => answerRoots(member, roots),
    onTask: (task, change) => tasking.asked(task, change),
  });
  const permissions = createPermissions({
    catalog,
    store,
    world: realWorld,
    openAsk: asking.wait,
    noteVisits: asking.noteVisits,
    wake: (member) => fleet.want(member),
  });
  const fleet = new Fleet({
    catalog,
    store,
    logger,
    env,
    daemon: mark,
    driver: config.requests,
    maxProcesses: options.shares.servers,
    maxCallBytes: options.shares.calls,
    record: createRecorder(store, name, log.mask),
    mask: log.mask,
    authorizerOf: (member) => remote.logins().authorizerOf(member),
    onOpen(member, ask, notify) {
      roots.opened(member, notify, () =>
        ask('ping', {}, PING_MS).then(
          () => {},
          () => {}, // that it does not answer is its health's business
        ),
      );
      return upkeep.opened(member, ask);
    },
    hostCapabilities: (member) => hosting.foreignCapabilities(member),
    onAsk: asking.take,
    permissions,
    onNotice: upkeep.said,
    onRetuned: upkeep.retuned,
    onState(member) {
      events.state(member, { state: member.state, why: member.why, pid: member.pid });
      roots.moved(member);
      hosting.changed();
    },
    onCrash: crash,
  });
  const remote = remoteLogins(store, paths.state, fleet, log.secrets.learn);
  const tasking: Tasking = createTasking({
    ...shared,
    clock,
    fleet,
    tell: (news) => hosting.tellTask(news),
    onGone: (session) => hosting.taskGone(session),
  });
  const hosting: Hosting = createHosting({
    world: realWorld,
    ...identity,
    config: current,
    fleet,
    catalog,
    store,
    roots,
    tasks: tasking.api,
    attend: createAttend(asking.inbox, onTrouble),
    subject: subjects.peers(identity.family),
    setLevels: upkeep.relevel,
    onTrouble,
  });

  return {
    catalog,
    fleet,
    hosting,
    asking,
    tasking,
    roots,
    prepare: remote.prepare,
    logins: remote.logins,
    online(nc: NatsConnection): void {
      hosting.online(nc);
      asking.online(nc);
      tasking.online(nc);
    },
    async close(): Promise<void> {
      await hosting.close();
      asking.close();
      roots.close();
      remote.close();
      await fleet.stop();
      await tasking.close();
    },
  };
}

/** How long a server may take to read what it was told of roots. */
const PING_MS = 1_000;

/** This daemon among those on the state directory, and what they have in common. */
const identityOf = ({ state, lock }: Paths) => ({
  daemon: lock,
  family: familyOf(state),
  seal: openSeal(state),
  isAlive: (daemon: string) => isHeld(state, daemon, 0), // without waiting: hosts are being served meanwhile
});

/** What servers say unasked goes to the bus, to the sessions that it concerns and to open questions. */
function upkeepOf(
  catalog: Catalog,
  events: Events,
  { hosting, asking }: { readonly hosting: () => Hosting; readonly asking: () => Asking },
) {
  const lists = createLists({
    catalog,
    onChange(member, kind) {
      events.listChanged(member, kind, catalog.get(member.name, kind).entries.length);
      hosting().changed();
    },
    onTrouble(member, kind) {
      // What the server said is for whoever asks for the list: hosts of other principals may hear this too.
      const data = `the ${kind} of ${member.server} are not listed: they could not be read; troupe status says why`;
      const params = Buffer.from(JSON.stringify({ level: 'warning', logger: 'troupe', data }));
      hosting().news.log(member, 'warning', params, { to: 'everyone' });
    },
  });
  return new Upkeep({
    lists,
    news: {
      log(member, level, params, audience) {
        events.log(member, level, params);
        hosting().news.log(member, level, params, audience);
      },
      foreign: (...notice) => hosting().news.foreign(...notice),
      elicited: (member, elicitationId, params) => asking().completed(member, elicitationId, params),
      updated(member, uri, params) {
        events.updated(member, uri, params);
        hosting().news.updated(member, uri, params);
      },
    },
    levelsFor: (member) => hosting().news.levelsFor(member),
  });
}

/** Logins to remote servers: what they take is loaded when the first remote server is configured. */
function remoteLogins(
  store: Store,
  directory: string,
  fleet: Pick<Fleet, 'members' | 'tell'>,
  onSecrets: (values: readonly string[]) => void,
) {
  let oauth: OAuth | undefined;
  return {
    /** Before servers are launched. */
    async prepare(servers: readonly ServerConfig[]): Promise<void> {
      if (oauth || !hasRemote(servers)) return;
      const [{ createOAuth }] = await Promise.all([import('../servers/oauth/oauth.ts'), loadRemote()]);
      oauth ??= createOAuth({
        store,
        directory,
        members: () => fleet.members(),
        onLogin: (server) => fleet.tell(server, { type: 'login.done' }),
        onSecrets,
      });
    },
    logins(): OAuth {
      if (!oauth) throw new TroupeError('unavailable', 'there is no remote server, so there is nothing to log in to');
      return oauth;
    },
    close: (): void => oauth?.close(),
  };
}
