// What a killed daemon leaves running: its servers and its nats-server. The next daemon on the state directory ends the
// servers and adopts the nats-server; `troupe down` ends both. Processes of a daemon that still runs are never touched.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stopLeftBroker } from '../bus/managed.ts';
import type { Paths } from '../config/paths.ts';
import { daemonOf } from '../servers/stdio/mark.ts';
import { sweep } from '../servers/stdio/sweep.ts';
import { acquireLock, locksIn } from '../store/lock.ts';
import { openStore, type Store } from '../store/store.ts';

const FAMILY_CHARACTERS = 16;

/** The part of the marks of a daemon's children that stays the same from life to life; another for each daemon. */
export const markerOf = ({ state, lock }: Pick<Paths, 'state' | 'lock'>): string =>
  familyOf(state) + lock.slice('daemon'.length);

/** What all daemons on a state directory have in common. */
export const familyOf = (state: string): string =>
  createHash('sha256').update(state).digest('hex').slice(0, FAMILY_CHARACTERS);

/**
 * The lock of the daemon that made a mark. The family in the mark does not count: a directory that was moved, or is mounted
 * elsewhere too, has marks of other families, but a lock is held under every name of the directory.
 */
const lockOf = (mark: string): string => `daemon${daemonOf(mark).slice(FAMILY_CHARACTERS)}`;

/** Ends what earlier runs of this daemon, and daemons that no longer run, have left. The caller holds this daemon's lock. */
export async function sweepLeftovers(store: Store, paths: Paths): Promise<string[]> {
  const { state, lock: own } = paths;
  const swept = await sweepOf(own);
  for (const name of locksIn(state, 'daemon').filter((each) => each !== own)) {
    const lock = acquireLock(state, name); // held, so that this daemon does not start while its leftovers are ended
    if (!lock) continue;
    try {
      swept.push(...(await sweepOf(name)));
    } finally {
      lock.release();
    }
  }
  return swept;

  function sweepOf(lock: string): Promise<string[]> {
    return sweep(store, markerOf({ state, lock }), (mark) => lockOf(mark) === lock);
  }
}

/** Ends servers and nats-server and names them; touches nothing while this daemon runs. */
export async function endLeftovers(paths: Paths): Promise<string[]> {
  if (!existsSync(paths.database)) return [];
  const lock = acquireLock(paths.state, paths.lock);
  if (!lock) return [];
  try {
    const store = await openStore(paths.database);
    const swept = await sweepLeftovers(store, paths);
    await store.close();
    return (await stopLeftBroker(paths.broker)) ? [...swept, 'nats-server'] : swept;
  } finally {
    lock.release();
  }
}
