// Who shares a server's process. The owner's is always there; with narrower sharing each further principal, or each
// session, gets an instance of its own on its first call, which goes to sleep when it is not used.

import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config/schema.ts';
import { TroupeError } from '../failures.ts';
import type { Member } from './member.ts';

export type InstancesOptions = {
  readonly members: ReadonlyMap<string, Member>;
  readonly launch: (name: string, config: ServerConfig, principal: string) => Member;
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
    const all = of(server).filter(({ name }) => isInstance(name));
    const theirs = all.filter((member) => member.onBehalfOf === principal);
    const isGreedy = theirs.length >= MAX_OF_ONE;
    if (!isGreedy && all.length < MAX_INSTANCES) return;
    const idle = (isGreedy ? theirs : all).find(({ state }) => isSpare(state));
    if (idle) return remove(idle.name);
    const whose = isGreedy ? `${MAX_OF_ONE} processes for you` : `${MAX_INSTANCES} processes`;
    throw new TroupeError('busy', `server ${server} already has ${whose}; end a session, or try later`);
  }

  return {
    of,
    memberFor,
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

/** A server's own name has no `@`. */
export const isInstance = (name: string): boolean => name.includes('@');

/** Who gets a process: the principal, or the one session, which is named by a part of its id that gives nothing away. */
const tenantOf = ({ settings }: ServerConfig, principal: string, holder: string | undefined): string =>
  settings.share === 'session' && holder !== undefined ? sessionHolder(holder) : principal;

export const sessionHolder = (session: string): string =>
  `session-${createHash('sha256').update(session).digest('hex').slice(0, 12)}`;

/** Whose instance it is. */
export const principalOf = (instance: string): string =>
  isInstance(instance) ? instance.slice(instance.indexOf('@') + 1) : OWNER;

/** The configuration of somebody's own instance, or undefined when it shares the owner's. */
function ownInstance(config: ServerConfig, tenant: string): ServerConfig | undefined {
  if (tenant === OWNER || config.settings.share === 'all') return undefined;
  const idleStopMs = config.settings.idleStopMs || IDLE_STOP_MS;
  return { ...config, settings: { ...config.settings, idleStopMs } };
}

/** A server's new configuration as its instance of that name has it: a further principal's keeps its own patience. */
export const fitting = (name: string, config: ServerConfig): ServerConfig =>
  name === config.name ? config : (ownInstance(config, principalOf(name)) ?? config);

/** In these states an instance does nothing for its principal. */
const isSpare = (state: string): boolean => ['asleep', 'failed', 'stopped', 'needs login'].includes(state);
