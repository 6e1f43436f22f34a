// The servers and the hosts' sessions put together: what a server says goes to its callers, to the sessions that it
// concerns, and to the bus.

import type { NatsConnection } from 'nats';
import { createAsking } from '../asks/asking.ts';
import { createAttend } from '../asks/attend.ts';
import type { Models } from '../asks/models/models.ts';
import type { Events } from '../bus/events.ts';
import type { Subjects } from '../bus/subjects.ts';
import { createRecorder } from '../calls/record.ts';
import { createCatalog } from '../catalog/catalog.ts';
import type { Config, ServerConfig } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { answerRoots, createRoots } from '../roots/roots.ts';
import { createFleet } from '../servers/fleet.ts';
import { createLists } from '../servers/lists.ts';
import type { Member } from '../servers/member.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';
import { hasRemote, loadRemote } from '../servers/remote/loader.ts';
import { createUpkeep } from '../servers/upkeep.ts';
import { createHosting, type Hosting } from '../sessions/hosting.ts';
import type { Clock } from '../store/clock.ts';
import { isHeld } from '../store/lock.ts';
import { openSeal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import { createTasking, type Tasking } from '../tasks/tasking.ts';
import { realWorld } from '../world/world.ts';
import { familyOf, markerOf } from './leftovers.ts';
import type { PartsOptions } from './parts.ts';

export type ServingOptions = PartsOptions & {
  readonly name: string;
  readonly store: Store;
  readonly events: Events;
  readonly subjects: Subjects;
  readonly current: () => Config;
  readonly models: Models;
  readonly clock: Clock;
  readonly onState: (member: Member) => void;
};

export type Serving = ReturnType<typeof createServing>;

export function createServing(options: ServingOptions) {
  const { paths, env, log, config, store, events, crash } = options;
  const { logger } = log;
  const catalog = createCatalog(store);
  const lists = createLists(catalog, (member, kind) => {
    events.listChanged(member, kind, catalog.get(member.name, kind).entries.length);
    hosting.changed();
  });
  const upkeep = createUpkeep({
    lists,
    news: {
      log(member, level, params, audience) {
        events.log(member, level, params);
        hosting.news.log(member, level, params, audience);
      },
      elicited: (member, elicitationId, params) => asking.completed(member, elicitationId, params),
      updated(member, uri, params) {
        events.updated(member, uri, params);
        hosting.news.updated(member, uri, params);
      },
    },
    levelsFor: (member) => hosting.news.levelsFor(member),
  });
  const seal = openSeal(paths.state);
  const isAlive = (daemon: string) => isHeld(paths.state, daemon, 0); // never waited for: hosts are being served here
  const beside = { seal, daemon: paths.lock, family: familyOf(paths.state), isAlive };
  const roots = createRoots({ config: options.current, store, logger });
  const asking = createAsking({
    ...{ ...beside, config: options.current, store, events, subjects: options.subjects, name: options.name, logger },
    models: options.models,
    rootsFor: (member) => answerRoots(member, roots),
    onTask: (task, change) => tasking.asked(task, change),
  });
  const fleet = createFleet({
    ...{ catalog, store, logger, env, daemon: markerOf(paths), driver: config.requests, onCrash: crash },
    record: createRecorder(store, options.name, log.mask),
    authorizerOf: (member) => logins().authorizerOf(member),
    onOpen(member, ask, notify) {
      upkeep.opened(member, ask);
      roots.opened(member, notify);
    },
    onAsk: asking.take,
    openAsk: asking.wait,
    noteVisits: asking.noteVisits,
    onNotice: upkeep.said,
    onRetuned: upkeep.retuned,
    onState(member) {
      events.state(member, { state: member.state, why: member.why, pid: member.pid });
      roots.moved(member);
      hosting.changed();
      options.onState(member);
    },
  });
  let oauth: OAuth | undefined;
  const logins = (): OAuth => {
    if (!oauth) throw new TroupeError('unavailable', 'there is no remote server, so there is nothing to log in to');
    return oauth;
  };

  /** Before a remote server is launched: what it takes is loaded when the first one is configured. */
  async function prepare(servers: readonly ServerConfig[]): Promise<void> {
    if (oauth || !hasRemote(servers)) return;
    const [{ createOAuth }] = await Promise.all([import('../servers/oauth/oauth.ts'), loadRemote()]);
    oauth ??= createOAuth({
      ...{ store, directory: paths.state, members: fleet.members },
      onLogin: (server) => fleet.tell(server, { type: 'login.done' }),
    });
  }

  const tasking: Tasking = createTasking({
    ...{ ...beside, config: options.current, store, clock: options.clock, events, subjects: options.subjects },
    ...{ name: options.name, fleet, logger, tell: (news) => hosting.tellTask(news) },
  });
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const hosting: Hosting = createHosting({
    world: realWorld,
    ...{ ...beside, config: options.current, fleet, catalog, store, roots },
    ...{ tasks: tasking.api, attend: createAttend(asking.inbox, onTrouble) },
    subject: options.subjects.peers(beside.family),
    setLevels: upkeep.relevel,
    onTrouble,
  });
  return {
    ...{ catalog, fleet, hosting, asking, tasking, roots, prepare, logins },
    online(nc: NatsConnection): void {
      hosting.online(nc);
      asking.online(nc);
      tasking.online(nc);
    },
    close(): void {
      asking.close();
      roots.close();
      oauth?.close();
    },
  };
}
