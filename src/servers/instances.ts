// Which callers share a server's process. The owner's is always there; with narrower sharing each further principal, or each
// session, gets an instance of its own on its first call, which goes to sleep when it is not used. So does every further
// process of a tenant that has a pool; a pool never takes the room of a tenant that has no process.

import { createHash } from 'node:crypto';
import { isInstance } from '../config/names.ts';
import type { ServerConfig } from '../config/schema.ts';
import { TroupeError } from '../protocol/failures.ts';
import { type Member, OWNER } from './member.ts';
import { meaningOf } from './states.ts';

export type InstancesOptions = {
  readonly members: ReadonlyMap<string, Member>;
  readonly launch: (name: string, config: ServerConfig, principal: string, first?: Member) => Member;
  readonly remove: (name: string) => void;
};

const IDLE_STOP_MS = 600_000;
const MAX_INSTANCES = 32;
/** One principal with many sessions must leave room for the others. */
const MAX_OF_ONE = 16;

/** A member is one process; the processes of one server are its instances and their pools. */
export class Instances {
  readonly #options: InstancesOptions;

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  /** All processes of a server. */
  of(server: string): Member[] {
    return [...this.#options.members.values()].filter((member) => member.server === server);
  }

  /** The first process of a tenant, then those that share its calls. */
  processesOf(first: Member): Member[] {
    return this.of(first.server).filter((each) => (each.first ?? each) === first);
  }

  /** The process that serves these calls: the owner's, or one of their own where sharing is narrower. */
  memberFor(server: string, principal: string, holder?: string): Member | undefined {
    const { members, launch } = this.#options;
    const owner = members.get(server);
    if (!owner) return undefined;
    const tenant = tenantOf(owner.config, principal, holder);
    const config = ownInstance(owner.config, tenant);
    if (!config) return owner;
    const own = instanceName(server, tenant);
    const known = members.get(own);
    if (known) return known;
    this.#makeRoom(server, principal);
    return launch(own, config, principal);
  }

  /** The same, but no process is started: while a tenant has none of its own, that is the owner's. */
  knownFor(server: string, principal: string, holder?: string): Member | undefined {
    const { members } = this.#options;
    const owner = members.get(server);
    if (!owner) return undefined;
    const tenant = tenantOf(owner.config, principal, holder);
    return (ownInstance(owner.config, tenant) && members.get(instanceName(server, tenant))) ?? owner;
  }

  /** One more process for the calls of that first one; undefined when there is no room. */
  further(first: Member): Member | undefined {
    if (excess(this.of(first.server), first.onBehalfOf) >= 0) return undefined;
    const names = new Set(this.processesOf(first).map(({ name }) => name));
    let slot = 2;
    while (names.has(furtherName(first, slot))) slot++;
    return this.#options.launch(furtherName(first, slot), withIdleStop(first.config), first.onBehalfOf, first);
  }

  /** A principal came who has a right to a process of its own, so that a pool has to be smaller. */
  isCrowded({ server, onBehalfOf }: Member): boolean {
    const staying = this.of(server).filter(({ state }) => !meaningOf(state).isLeaving);
    return excess(staying, onBehalfOf) > 0;
  }

  /** The processes that served one holder alone go with it. */
  release(holder: string): void {
    const { members, remove } = this.#options;
    const tenant = sessionHolder(holder);
    for (const { name, principal } of members.values()) if (principal === tenant) remove(name);
  }

  /** A caller that may name any principal, or open any number of sessions, must not start any number of processes. */
  #makeRoom(server: string, principal: string): void {
    const firsts = this.of(server).filter(({ name, first }) => isInstance(name) && !first);
    const theirs = firsts.filter((member) => member.onBehalfOf === principal);
    const isGreedy = theirs.length >= MAX_OF_ONE;
    if (!isGreedy && firsts.length < MAX_INSTANCES) return;
    const idle = (isGreedy ? theirs : firsts).find((member) => this.processesOf(member).every(isSpare));
    for (const { name } of idle ? this.processesOf(idle) : []) this.#options.remove(name);
    if (idle) return;
    const whose = isGreedy ? `${MAX_OF_ONE} processes for you` : `${MAX_INSTANCES} processes`;
    throw new TroupeError('busy', `server ${server} already has ${whose}; end a session, or try later`);
  }
}

/** By how many there are too many of these processes: of that principal's, or in all. */
function excess(processes: readonly Member[], principal: string): number {
  const all = processes.filter(({ name }) => isInstance(name));
  const theirs = all.filter((member) => member.onBehalfOf === principal);
  return Math.max(all.length - MAX_INSTANCES, theirs.length - MAX_OF_ONE);
}

const instanceName = (server: string, tenant: string): string => `${server}@${tenant}`;

/** `files~2@alice` is the second process of alice's instance. A server's name has neither sign; a principal's may have both. */
const furtherName = ({ server, name }: Member, slot: number): string => `${server}~${slot}${name.slice(server.length)}`;

/** The tenant that gets a process: the principal, or the session, named by a part of a hash that does not give its id away. */
const tenantOf = ({ settings }: ServerConfig, principal: string, holder: string | undefined): string =>
  settings.share === 'session' && holder !== undefined ? sessionHolder(holder) : principal;

export const sessionHolder = (session: string): string =>
  `session-${createHash('sha256').update(session).digest('hex').slice(0, 12)}`;

/** The configuration of a tenant's own instance, or undefined when the tenant shares the owner's. */
const ownInstance = (config: ServerConfig, tenant: string): ServerConfig | undefined =>
  tenant === OWNER || config.settings.share === 'all' ? undefined : withIdleStop(config);

/** Unlike the server's own process, all others go to sleep. */
function withIdleStop(config: ServerConfig): ServerConfig {
  const idleStopMs = config.settings.idleStopMs || IDLE_STOP_MS;
  return { ...config, settings: { ...config.settings, idleStopMs } };
}

/** A server's new configuration as its instance of that name has it. */
export const configFor = (name: string, config: ServerConfig): ServerConfig =>
  name === config.name ? config : withIdleStop(config);

/** A first process is spare when its state says that it rests, a further one also when it has no call in flight. */
const isSpare = ({ state, first, lane }: Member): boolean =>
  meaningOf(state).isAtRest || (first !== undefined && lane.inFlight === 0);
