// All sessions of this daemon's hosts. A session is a row, committed before the host hears of it. What is in memory is made
// from the row when it is needed and dropped when nobody is there, so every daemon on the state directory can serve it.

import { randomBytes } from 'node:crypto';
import type { Door } from '../calls/call.ts';
import { eraOf, LATEST } from '../protocol/eras.ts';
import { TroupeError } from '../protocol/failures.ts';
import { levelOf } from '../protocol/signals.ts';
import type { SessionRow } from '../store/store.ts';
import type { HostSession, Opening, Sessions } from './host.ts';
import { capabilitiesOf, initializeResult, readInitialize } from './initialize.ts';
import { createLive, type Live } from './live.ts';
import type { Identity, LocalSession } from './session.ts';
import { startSweeper } from './sweeper.ts';
import type { World } from './world.ts';

export type SessionsOptions = {
  readonly world: World;
  readonly maxSessions: number;
  readonly idleMs: number;
  /** What the names of all daemons on this state directory begin with. */
  readonly family: string;
  readonly onTrouble: (error: unknown) => void;
};

export type LocalSessions = Sessions & {
  /** Those that are in memory. */
  live(): LocalSession[];
  local(id: string, principal: string): LocalSession | undefined;
};

export function createSessions({ world, maxSessions, idleMs, family, onTrouble }: SessionsOptions): LocalSessions {
  const { store, scopes, streams } = world;
  const live = new Map<string, Live>();
  const sweeper = startSweeper({ store, live, idleMs, onTrouble });

  function bring(identity: Identity): Live {
    const { id } = identity;
    const onGone = () => {
      live.delete(id);
      streams.forget(id);
    };
    return createLive({ world, identity, idleMs, onGone, onTrouble });
  }

  function begin(id: string, found: Live): void {
    live.set(id, found);
    streams.skip(id);
    found.actor.send({ type: 'committed' });
  }

  async function open({ principal, door, scope, params }: Opening) {
    if (!scopes.has(scope)) throw new TroupeError('unknownServer', `there is no ${nameOf(scope)} here`);
    const { era, client, capabilities, via } = readInitialize(params);
    if (via?.startsWith(family))
      throw new TroupeError(
        'invalid',
        'troupe cannot be a server of itself; remove that server from its configuration',
      );
    await makeRoom(principal);
    const id = randomBytes(16).toString('base64url');
    const opened = bring({ id, principal, door, scope, era, capabilities, level: undefined });
    const now = Date.now();
    const row = [id, principal, door, scope, era, JSON.stringify(client), JSON.stringify(capabilities), now, now];
    try {
      await store.commit('addSession', row);
    } catch (error) {
      opened.actor.send({ type: 'refused' });
      throw error;
    }
    begin(id, opened);
    const members = scopes.members({ scope, principal, session: id });
    return { session: opened.host, result: initializeResult(era, scope, members) };
  }

  /** A host that never says goodbye must not keep others of its principal out: the one unused for longest goes. */
  async function makeRoom(principal: string): Promise<void> {
    const count = store.get<{ count: number }>('countSessions', [principal])?.count ?? 0;
    if (count < maxSessions) return;
    const idle = store.all<{ id: string }>('leastUsedSessions', [principal]).find(({ id }) => !live.get(id)?.holders);
    if (!idle)
      throw new TroupeError('busy', `${maxSessions} sessions are open; close one, or raise x-troupe.http.maxSessions`);
    await store.commit('endSession', [Date.now(), idle.id]);
    live.get(idle.id)?.actor.send({ type: 'ended' });
  }

  function find(id: string, principal: string): HostSession | undefined {
    const known = live.get(id);
    if (known) return known.host.principal === principal ? known.host : undefined;
    const row = store.get<SessionRow>('session', [id]);
    if (!row || row.principal !== principal || row.used_at < Date.now() - idleMs) return undefined;
    const found = bring(identityOf(row));
    begin(id, found);
    void found.session.restore().catch(onTrouble);
    return found.host;
  }

  return {
    open,
    find,
    hasScope: scopes.has,
    streams,
    live: () => [...live.values()].map(({ session }) => session),
    local: (id, principal) => {
      const found = live.get(id);
      return found?.host.principal === principal ? found.session : undefined;
    },
    get count() {
      return live.size;
    },
    async close(): Promise<void> {
      sweeper.stop();
      streams.close();
      for (const { actor } of live.values()) actor.stop();
      live.clear();
    },
  };
}

function identityOf(row: SessionRow): Identity {
  const { id, principal, scope, level } = row;
  const era = eraOf(row.era) ?? LATEST;
  return {
    ...{ id, principal, scope, door: row.door as Door, era },
    ...{ capabilities: capabilitiesOf(JSON.parse(row.capabilities), era), level: levelOf(level ?? undefined) },
  };
}

const nameOf = (scope: string): string => (scope.startsWith('@') ? `profile ${scope.slice(1)}` : `server ${scope}`);
