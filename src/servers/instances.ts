// Which callers share a server's process. The owner's is always there; with narrower sharing each further principal, or each
// session, gets an instance of its own on its first call, which goes to sleep when it is not used. So does every further
// process of a tenant that has a pool; a pool never takes the room of a tenant that has no process. Where all are taken, one
// that nobody uses is given up for whoever has none.

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
  readonly now: () => number;
  /** How many processes the machine has room for, of all servers together. */
  readonly most?: number;
};

const IDLE_STOP_MS = 600_000;
const MAX_INSTANCES = 32;
/** One principal with many sessions must leave room for the others. */
const MAX_OF_ONE = 16;
/** After so long unused a session's process may be given up for a principal that has none. */
const SESSION_MS = 60_000;

/** A member is one process; the processes of one server are its instances and their pools. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #newcomers: Newcomers;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#newcomers = new Newcomers(options.now);
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
    this.#newcomers.admit(server, principal);
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
    if (excess(this.of(first.server), first.onBehalfOf) >= 0 || this.#isMachineFull()) return undefined;
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
    const firsts = this.#tenants().filter((member) => member.server === server);
    const theirs = firsts.filter((member) => member.onBehalfOf === principal);
    const already = (whose: string): string => `server ${server} already has ${whose}; end a session, or try later`;
    if (theirs.length >= MAX_OF_ONE) this.#giveUpOne(theirs, principal, already(`${MAX_OF_ONE} processes for you`));
    else if (firsts.length >= MAX_INSTANCES) this.#giveUpOne(firsts, principal, already(`${MAX_INSTANCES} processes`));
    else if (this.#isMachineFull()) this.#giveUpOne(this.#tenants(), principal, MACHINE_FULL);
  }

  /** The first processes of all tenants, less those that are on their way out. */
  #tenants(): Member[] {
    const all = [...this.#options.members.values()];
    return all.filter(({ name, first, state }) => isInstance(name) && !first && !meaningOf(state).isLeaving);
  }

  #isMachineFull(): boolean {
    const { members, most = Number.POSITIVE_INFINITY } = this.#options;
    if (members.size < most) return false;
    return [...members.values()].filter(({ state }) => !meaningOf(state).isAtRest).length >= most;
  }

  /** The tenant that can best do without loses its processes; when none can, the newcomer hears why there is no room. */
  #giveUpOne(tenants: readonly Member[], principal: string, full: string): void {
    const counts = new Map<string, number>();
    for (const { onBehalfOf } of tenants) counts.set(onBehalfOf, (counts.get(onBehalfOf) ?? 0) + 1);
    let best: { member: Member; rank: number; idleMs: number } | undefined;
    for (const member of tenants) {
      const idleMs = this.#idleMs(member);
      const others = counts.has(principal) ? 1 : (counts.get(member.onBehalfOf) ?? 1);
      const rank = rankOf(member, idleMs, others);
      if (rank === undefined) continue;
      if (!best || rank < best.rank || (rank === best.rank && idleMs > best.idleMs)) best = { member, rank, idleMs };
    }
    if (!best) throw new TroupeError('busy', full);
    for (const { name } of this.processesOf(best.member)) this.#options.remove(name);
  }

  /** For how long nobody has used any process of a tenant; 0 while somebody does. */
  #idleMs(first: Member): number {
    if (first.pool && first.pool.queued > 0) return 0;
    const idle = this.processesOf(first).map((member) => {
      if (meaningOf(member.state).isAtRest) return Number.POSITIVE_INFINITY;
      return member.subscriptions.isEmpty ? member.lane.idleMs : 0;
    });
    return Math.min(...idle);
  }
}

const MACHINE_FULL = 'troupe runs as many processes as this machine has descriptors for (ulimit -n); try later';

/**
 * Who goes first: processes that rest anyway, then those that no session has for itself, then one of several that one
 * principal has, for another that has none, and last what a session has not used for long. Undefined: it stays.
 */
function rankOf(member: Member, idleMs: number, ofItsPrincipal: number): number | undefined {
  if (idleMs === Number.POSITIVE_INFINITY) return 0;
  if (idleMs <= 0) return undefined;
  if (member.principal === member.onBehalfOf) return 1;
  if (ofItsPrincipal > 1) return 2;
  return idleMs >= SESSION_MS ? 3 : undefined;
}

// ── Callers that were never seen before ──────────────────────────────────────

const MOST_NEW = 2 * MAX_INSTANCES;
const ONE_MORE_MS = 1_000;
const MAX_KNOWN = 1_000;

/**
 * Whoever may call himself what he likes could start a process with each call. So only so many are started for principals that
 * this daemon has not seen yet, and then one a second; for those that it knows there is no such bound.
 */
class Newcomers {
  readonly #now: () => number;
  readonly #known = new Set<string>();
  /** By server: how many may come now, and when that was counted. */
  readonly #places = new Map<string, { left: number; at: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  admit(server: string, principal: string): void {
    const key = `${server} ${principal}`;
    if (!this.#known.delete(key)) this.#take(server);
    this.#known.add(key);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }

  #take(server: string): void {
    const now = this.#now();
    const { left, at } = this.#places.get(server) ?? { left: MOST_NEW, at: now };
    const places = Math.min(MOST_NEW, left + (now - at) / ONE_MORE_MS);
    if (places < 1)
      throw new TroupeError('busy', `server ${server} has too many new callers at once; try again in some seconds`);
    this.#places.set(server, { left: places - 1, at: now });
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
