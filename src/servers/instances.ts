// Who shares a server's process. The owner's is always there; with narrower sharing each further principal, or each
// session, gets an instance of its own on its first call, which goes to sleep when it is not used.

import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config/schema.ts';
import { TroupeError } from '../failures.ts';
import type { Member } from './member.ts';

export type InstancesOptions = {
  readonly members: ReadonlyMap<string, Member>;
  readonly launch: (name: string, config: ServerConfig) => Member;
  readonly remove: (name: string) => void;
};

const OWNER = '_';
const IDLE_STOP_MS = 600_000;
const MAX_INSTANCES = 32;

export function createInstances({ members, launch, remove }: InstancesOptions) {
  const of = (server: string): Member[] => [...members.values()].filter((member) => member.server === server);

  /** The process that serves these calls: the owner's, or one of their own where sharing is narrower. */
  function memberFor(server: string, principal: string, session?: string): Member | undefined {
    const owner = members.get(server);
    if (!owner) return undefined;
    const holder = holderOf(owner.config, principal, session);
    const config = ownInstance(owner.config, holder);
    if (!config) return owner;
    const own = instanceName(server, holder);
    return members.get(own) ?? launch(makeRoom(server, own), config);
  }

  /** Whoever may name any principal must not be able to start any number of processes. */
  function makeRoom(server: string, own: string): string {
    const all = of(server);
    if (all.length <= MAX_INSTANCES) return own;
    const idle = all.find((member) => member.name !== server && isSpare(member.state));
    if (!idle) throw new TroupeError('busy', `server ${server} already has ${MAX_INSTANCES} processes; try later`);
    remove(idle.name);
    return own;
  }

  return {
    of,
    memberFor,
    /** The same, but nobody is started for it. */
    knownFor(server: string, principal: string, session?: string): Member | undefined {
      const owner = members.get(server);
      if (!owner) return undefined;
      const holder = holderOf(owner.config, principal, session);
      return (ownInstance(owner.config, holder) && members.get(instanceName(server, holder))) ?? owner;
    },
    /** The processes that served one session alone go with it. */
    release(session: string): void {
      const holder = sessionHolder(session);
      for (const { name, principal } of members.values()) if (principal === holder) remove(name);
    },
  };
}

const instanceName = (server: string, principal: string): string => `${server}@${principal}`;

/** Who gets a process: the principal, or the one session, which is named by a part of its id that gives nothing away. */
const holderOf = ({ settings }: ServerConfig, principal: string, session: string | undefined): string =>
  settings.share === 'session' && session !== undefined ? sessionHolder(session) : principal;

export const sessionHolder = (session: string): string =>
  `session-${createHash('sha256').update(session).digest('hex').slice(0, 12)}`;

/** Whose instance it is. A server's own name has no `@`. */
export const principalOf = (instance: string): string =>
  instance.includes('@') ? instance.slice(instance.indexOf('@') + 1) : OWNER;

/** The configuration of a principal's own instance, or undefined when it shares the owner's. */
function ownInstance(config: ServerConfig, principal: string): ServerConfig | undefined {
  if (principal === OWNER || config.settings.share === 'all') return undefined;
  const idleStopMs = config.settings.idleStopMs || IDLE_STOP_MS;
  return { ...config, settings: { ...config.settings, idleStopMs } };
}

/** A server's new configuration as its instance of that name has it: a further principal's keeps its own patience. */
export const fitting = (name: string, config: ServerConfig): ServerConfig =>
  name === config.name ? config : (ownInstance(config, principalOf(name)) ?? config);

/** In these states an instance does nothing for its principal. */
const isSpare = (state: string): boolean => ['asleep', 'failed', 'stopped', 'needs login'].includes(state);
