// What the daemon says of itself and of its servers, in the shape that `troupe status --json` promises.

import type { Bus } from '../bus/bus.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { ALL_KINDS } from '../catalog/kinds.ts';
import { VERSION } from '../protocol/version.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import type { Store } from '../store/store.ts';

export type PluginStatus = { readonly name: string; readonly state: 'running' | 'failed'; readonly error?: string };
export type HttpStatus = {
  readonly state: 'listening' | 'off' | 'failed';
  /** Such as http://127.0.0.1:7411. */
  readonly url: string | null;
  /** The port that it would have had, were it not taken, now or when this one was first chosen. */
  readonly insteadOf?: number;
  /** Other machines can reach it. */
  readonly isOpen?: boolean;
  /** Everybody must show a token: the owner on this machine too. */
  readonly needsToken?: boolean;
  readonly error?: string;
};

/** How much of something is used, and how much there is; null where that is not known. */
export type Used = { readonly used: number | null; readonly most: number | null };
export type LimitsStatus = { readonly descriptors: Used; readonly hosts: Used; readonly servers: Used };

export type StatusParts = {
  readonly bus: Bus;
  readonly store: Store;
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  readonly plugins: readonly PluginStatus[];
  readonly http: HttpStatus;
  /** Sessions of hosts that are open, here and in the daemons beside us. */
  readonly sessions: number;
  /** Questions that wait for somebody. */
  readonly asks: { readonly open: number };
  readonly tasks: { readonly unfinished: number };
  readonly limits: LimitsStatus;
  readonly daemon: {
    state: string;
    name: string;
    /** Which of the daemons on the state directory; null is the usual one. */
    instance: string | null;
    startedAt: number;
    stateDir: string;
    config: string | undefined;
    /** Why the file as it is now is not in force. */
    configError: string | null;
    logFile: string;
    /** Null where it cannot be known. */
    memoryBytes: number | null;
  };
};

export type ServerStatus = ReturnType<typeof serverStatus>;
export type Status = ReturnType<typeof statusOf>;

export function statusOf(parts: StatusParts) {
  const { bus, store, fleet, catalog, plugins, http, sessions, asks, tasks, limits, daemon } = parts;
  return {
    daemon: {
      pid: process.pid,
      version: VERSION,
      ...daemon,
      config: daemon.config ?? null,
      uptimeMs: Date.now() - daemon.startedAt,
    },
    bus: {
      ...bus.status(),
      outbox: store.get<{ depth: number }>('outboxDepth')?.depth ?? 0,
      /** Events that no broker would take: what and why is in the table `refused`. */
      refused: store.get<{ count: number }>('countRefused')?.count ?? 0,
    },
    store: { ...store.health, dropped: store.dropped },
    http,
    sessions,
    asks,
    tasks,
    limits,
    plugins,
    servers: fleet.members().map((member) => serverStatus(member, catalog)),
  };
}

export type DoorsEnvironment = { NATS_URL?: string; TROUPE_HTTP?: string; TROUPE_TOKEN?: string };

/** What `troupe env` shows to this machine's owner: every address that can be had now, with what it takes to come in. */
export function environmentOf(bus: Pick<Bus, 'environment'>, http: HttpStatus, token?: string): DoorsEnvironment {
  const { url } = http.state === 'listening' ? http : { url: null };
  const door = url === null ? {} : { TROUPE_HTTP: url, ...(token !== undefined && { TROUPE_TOKEN: token }) };
  try {
    return { ...bus.environment(), ...door };
  } catch (error) {
    if (url === null) throw error;
    return door; // hosts can do without the bus
  }
}

/** What is wrong with a server now, though it may be ready: it is ill, or a list of it cannot be read. */
const troubleOf = (member: Member, catalog: Catalog): string | undefined =>
  member.why || ALL_KINDS.map((kind) => catalog.get((member.first ?? member).name, kind).trouble?.why).find(Boolean);

export function serverStatus(member: Member, catalog: Catalog) {
  const { name, state, since, pid, restarts, lane, lastError, facts, calls, errors, first, pool } = member;
  const count = (kind: Parameters<Catalog['get']>[1]) => catalog.get((first ?? member).name, kind).entries.length;
  const queued = lane.queued + (first ? 0 : (pool?.queued ?? 0));
  return {
    name,
    state,
    since,
    pid: pid ?? null,
    restarts,
    inFlight: lane.inFlight,
    queued,
    lastError: lastError || null,
    trouble: troubleOf(member, catalog) ?? null,
    protocolVersion: facts?.era ?? null,
    serverInfo: facts ? { name: facts.name, version: facts.version } : null,
    tools: count('tools'),
    resources: count('resources'),
    templates: count('templates'),
    prompts: count('prompts'),
    calls,
    errors,
  };
}
