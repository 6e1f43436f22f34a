// All sessions of this daemon's hosts. A session is a row, committed before the host hears of it. What is in memory is made
// from the row when it is needed and dropped when nobody is there, so every daemon on the state directory can serve it.

import { eraOf, LATEST } from '../protocol/eras.ts';
import { TroupeError } from '../protocol/failures.ts';
import { jsonOf } from '../protocol/json.ts';
import { levelOf } from '../protocol/signals.ts';
import { NAME } from '../protocol/version.ts';
import type { SessionRow } from '../store/store.ts';
import type { HostDoor, HostSession, Opening, Sessions } from './host.ts';
import { capabilitiesOf, initializeResult, readInitialize } from './initialize.ts';
import type { Identity, SessionPorts } from './ports.ts';
import { createResident, type Home, isOpen, type Resident, send } from './resident.ts';
import type { LocalSession } from './session.ts';

export type SessionsOptions = {
  readonly ports: SessionPorts;
  readonly maxSessions: number;
  readonly idleMs: number;
  /** What the names of all daemons on this state directory begin with. */
  readonly family: string;
  readonly onTrouble: (error: unknown) => void;
};

export type LocalSessions = Sessions & {
  /** The sessions that are in memory. */
  residents(): LocalSession[];
  isResident(id: string): boolean;
  local(id: string, principal: string): LocalSession | undefined;
};

/** As many principals may have all their sessions in memory at once; on a bus anybody may call himself another one. */
const TENANTS = 4;
const CROWDED = new TroupeError('busy', 'too many sessions are open in all; close some, or try again soon');
/** A session is not ended for the next one's sake before its host has had the time to use it. */
const LEAST_MS = 5_000;

export function createSessions({ ports, maxSessions, idleMs, family, onTrouble }: SessionsOptions): LocalSessions {
  const { world, store, scopes, streams } = ports;
  const residents = new Map<string, Resident>();
  const noRoom = new TroupeError(
    'busy',
    `${maxSessions} sessions are open; close one, or raise x-troupe.http.maxSessions`,
  );
  const home: Home = { ports, residents, maxSessions, noRoom, idleMs, onTrouble };
  const stopWatching = watchRows(home);
  const opening = new Map<string, number>();

  async function open({ principal, door, scope, params, via }: Opening) {
    if (!scopes.has(scope)) throw new TroupeError('unknownServer', `there is no ${nameOf(scope)} here`);
    const { era, client, capabilities } = readInitialize(params);
    // A host that one of our servers runs has our mark in its environment too, but does not call itself troupe.
    if (via?.startsWith(family) && client.name === NAME)
      throw new TroupeError(
        'invalid',
        'troupe cannot be a server of itself; remove that server from its configuration',
      );
    const id = world.random(16).toString('base64url');
    const identity: Identity = { id, principal, door, scope, era, capabilities, level: undefined };
    const giveBack = takePlace(principal);
    const opened = await add(identity, client).finally(giveBack);
    const members = scopes.members({ scope, principal, session: id });
    for (const each of members) ports.fleet.expect(each);
    return { session: opened.host, result: initializeResult(era, scope, members) };
  }

  /** Sessions that are being opened count before they are: for their principal, and for all. Returns how to count no more. */
  function takePlace(principal: string): () => void {
    const mine = opening.get(principal) ?? 0;
    if (mine >= maxSessions) throw noRoom;
    let all = residents.size;
    for (const count of opening.values()) all += count;
    if (all >= TENANTS * maxSessions) throw CROWDED;
    opening.set(principal, mine + 1);
    return () => {
      const left = (opening.get(principal) ?? 0) - 1;
      if (left > 0) opening.set(principal, left);
      else opening.delete(principal);
    };
  }

  /** The row is added where there is room for it, which the database itself counts: no two can take the same place. */
  async function add(identity: Identity, client: object): Promise<Resident> {
    for (;;) {
      if (isFull(identity.principal)) await makeRoom(identity.principal);
      const opened = createResident(home, { identity, client, savedAt: world.date() });
      send(opened, 'open');
      try {
        await opened.writing;
        return opened;
      } catch (error) {
        if (error !== noRoom) throw error; // else others were faster, and now it is seen that they were
      }
    }
  }

  const isFull = (principal: string): boolean =>
    (store.get<{ count: number }>('countSessions', [principal])?.count ?? 0) >= maxSessions;

  /** A host that never says goodbye must not keep others of its principal out: the session unused for longest is ended. */
  async function makeRoom(principal: string): Promise<void> {
    const latest = world.date() - LEAST_MS;
    const unused = store.all<Pick<SessionRow, 'id' | 'used_at'>>('leastUsedSessions', [principal]).find((row) => {
      const resident = residents.get(row.id);
      return resident ? !isOpen(resident) && resident.usedAt <= latest : row.used_at <= latest;
    });
    if (!unused) throw noRoom;
    const resident = residents.get(unused.id);
    if (resident) await resident.host.end();
    else await store.commit('endSession', [world.date(), unused.id]);
  }

  function find(id: string, principal: string): HostSession | undefined {
    const known = residents.get(id);
    if (known) return known.host.principal === principal ? known.host : undefined;
    const row = store.get<SessionRow>('session', [id]);
    if (!row || row.principal !== principal || row.used_at < world.date() - idleMs) return undefined;
    const found = createResident(home, { identity: identityOf(row), savedAt: row.used_at });
    send(found, 'found');
    return found.host;
  }

  return {
    open,
    find,
    hasScope: scopes.has,
    streams,
    residents: () => [...residents.values()].map(({ session }) => session),
    isResident: (id) => residents.has(id),
    local: (id, principal) => {
      const found = residents.get(id);
      return found?.host.principal === principal ? found.session : undefined;
    },
    get count() {
      return residents.size;
    },
    async close(): Promise<void> {
      stopWatching();
      streams.close();
      for (const resident of residents.values()) send(resident, 'stop');
    },
  };
}

const WATCH_MS = 1_000;
const EXPIRE_EVERY = 60;

/** The disk does not tell which rows another daemon has ended, nor which have expired. Returns how to stop watching. */
function watchRows({ ports, residents, idleMs, onTrouble }: Home): () => void {
  const { world, store } = ports;
  let lookedAt = world.date();
  let looks = 0;

  return world.every(WATCH_MS, () => {
    try {
      // A little of the time before is looked at again: the clocks of two processes need not agree.
      for (const { id } of store.all<{ id: string }>('sessionsEnded', [lookedAt - 2 * WATCH_MS])) {
        const resident = residents.get(id);
        if (resident) send(resident, 'row.ended');
      }
      lookedAt = world.date();
      if (looks++ % EXPIRE_EVERY === 0) store.write('expireSessions', [lookedAt, lookedAt - idleMs]);
    } catch (error) {
      onTrouble(error);
    }
  });
}

function identityOf({ id, principal, door, scope, level, capabilities, ...row }: SessionRow): Identity {
  const era = eraOf(row.era) ?? LATEST;
  return {
    id,
    principal,
    door: door as HostDoor,
    scope,
    era,
    capabilities: capabilitiesOf(jsonOf(capabilities), era),
    level: levelOf(level ?? undefined),
  };
}

const nameOf = (scope: string): string => (scope.startsWith('@') ? `profile ${scope.slice(1)}` : `server ${scope}`);
