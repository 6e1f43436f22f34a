// Who shares a server's process. The owner's is always there; with narrower sharing each further principal, or each
// session, gets an instance of its own on its first call, which goes to sleep when it is not used. So does every further
// process of those who have a pool of them; a pool never takes the room of somebody who has none.

import { createHash } from 'node:crypto';
import { isInstance } from '../config/names.ts';
import type { ServerConfig } from '../config/schema.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Member } from './member.ts';
import { meaningOf } from './states.ts';

export type InstancesOptions = {
  readonly members: ReadonlyMap<string, Member>;
  readonly launch: (name: string, config: ServerConfig, principal: string, first?: Member) => Member;
  readonly remove: (name: string) => void;
};

const OWNER = '_';
const IDLE_STOP_MS = 600_000;
const MAX_INSTANCES = 32;
/** One principal with many sessions must leave room for the others. */
const MAX_OF_ONE = 16;

export function createInstances({ members, launch, remove }: InstancesOptions) {
  const of = (server: string): Member[] => [...members.values()].filter((member) => member.server === server);

  /** The process that serves these calls: the owner's, or one of their own where sharing is narrower. */
  function memberFor(server: string, principal: string, holder?: string): Member | undefined {
    const owner = members.get(server);
    if (!owner) return undefined;
    const tenant = tenantOf(owner.config, principal, holder);
    const config = ownInstance(owner.config, tenant);
    if (!config) return owner;
    const own = instanceName(server, tenant);
    const known = members.get(own);
    if (known) return known;
    makeRoom(server, principal);
    return launch(own, config, principal);
  }

  /** Whoever may name any principal, or open any number of sessions, must not start any number of processes. */
  function makeRoom(server: string, principal: string): void {
    const firsts = of(server).filter(({ name, first }) => isInstance(name) && !first);
    const theirs = firsts.filter((member) => member.onBehalfOf === principal);
    const isGreedy = theirs.length >= MAX_OF_ONE;
    if (!isGreedy && firsts.length < MAX_INSTANCES) return;
    const idle = (isGreedy ? theirs : firsts).find((member) => processesOf(member).every(isSpare));
    for (const { name } of idle ? processesOf(idle) : []) remove(name);
    if (idle) return;
    const whose = isGreedy ? `${MAX_OF_ONE} processes for you` : `${MAX_INSTANCES} processes`;
    throw new TroupeError('busy', `server ${server} already has ${whose}; end a session, or try later`);
  }

  /** The first process of a tenant, then those that share its calls. */
  const processesOf = (first: Member): Member[] => of(first.server).filter((each) => (each.first ?? each) === first);

  /** By how many there are too many of these processes: of that principal's, or in all. */
  function excess(processes: readonly Member[], principal: string): number {
    const all = processes.filter(({ name }) => isInstance(name));
    const theirs = all.filter((member) => member.onBehalfOf === principal);
    return Math.max(all.length - MAX_INSTANCES, theirs.length - MAX_OF_ONE);
  }

  return {
    of,
    memberFor,
    processesOf,
    /** One more process for the calls of that one; undefined when there is no room. */
    further(first: Member): Member | undefined {
      if (excess(of(first.server), first.onBehalfOf) >= 0) return undefined;
      const names = new Set(processesOf(first).map(({ name }) => name));
      let slot = 2;
      while (names.has(furtherName(first, slot))) slot++;
      return launch(furtherName(first, slot), patient(first.config), first.onBehalfOf, first);
    },
    /** A principal came who has a right to a process of its own, so that a pool has to be smaller. */
    isCrowded: ({ server, onBehalfOf }: Member): boolean =>
      excess(
        of(server).filter(({ state }) => !meaningOf(state).isLeaving),
        onBehalfOf,
      ) > 0,
    /** The same, but nobody is started for it. */
    knownFor(server: string, principal: string, holder?: string): Member | undefined {
      const owner = members.get(server);
      if (!owner) return undefined;
      const tenant = tenantOf(owner.config, principal, holder);
      return (ownInstance(owner.config, tenant) && members.get(instanceName(server, tenant))) ?? owner;
    },
    /** The processes that served one holder alone go with it. */
    release(holder: string): void {
      const tenant = sessionHolder(holder);
      for (const { name, principal } of members.values()) if (principal === tenant) remove(name);
    },
  };
}

const instanceName = (server: string, tenant: string): string => `${server}@${tenant}`;

/** A server's own name has neither sign; a principal's may have both. */
const furtherName = ({ server, name }: Member, slot: number): string => `${server}~${slot}${name.slice(server.length)}`;

/** Who gets a process: the principal, or the one session, which is named by a part of its id that gives nothing away. */
const tenantOf = ({ settings }: ServerConfig, principal: string, holder: string | undefined): string =>
  settings.share === 'session' && holder !== undefined ? sessionHolder(holder) : principal;

export const sessionHolder = (session: string): string =>
  `session-${createHash('sha256').update(session).digest('hex').slice(0, 12)}`;

/** Whose instance it is. */
export const principalOf = (instance: string): string =>
  instance.includes('@') ? instance.slice(instance.indexOf('@') + 1) : OWNER;

/** The configuration of somebody's own instance, or undefined when it shares the owner's. */
const ownInstance = (config: ServerConfig, tenant: string): ServerConfig | undefined =>
  tenant === OWNER || config.settings.share === 'all' ? undefined : patient(config);

/** Unlike the server's own process, all others go to sleep. */
function patient(config: ServerConfig): ServerConfig {
  const idleStopMs = config.settings.idleStopMs || IDLE_STOP_MS;
  return { ...config, settings: { ...config.settings, idleStopMs } };
}

/** A server's new configuration as its instance of that name has it. */
export const fitting = (name: string, config: ServerConfig): ServerConfig =>
  name === config.name ? config : patient(config);

/** It does nothing for its principal: the first process by its state, a further one also where it only waits for a call. */
const isSpare = ({ state, first, lane }: Member): boolean =>
  meaningOf(state).isAtRest || (first !== undefined && lane.inFlight === 0);
