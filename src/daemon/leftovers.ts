// What a daemon that was killed leaves running: its servers, and its nats-server. The next daemon on the state directory
// ends the first and adopts the second; whoever wants nothing running any more ends both. What a living one runs is its own.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stopLeftBroker } from '../bus/managed.ts';
import type { Paths } from '../config/paths.ts';
import { sweep } from '../servers/sweep.ts';
import { acquireLock, locksIn } from '../store/lock.ts';
import { openStore, type Store } from '../store/store.ts';

const FAMILY_CHARACTERS = 16;

/** Every life of a daemon marks its children alike, so that the next one finds them; daemons beside it mark them otherwise. */
export const markerOf = ({ state, lock }: Pick<Paths, 'state' | 'lock'>): string =>
  familyOf(state) + lock.slice('daemon'.length);

/** All daemons on a state directory. */
export const familyOf = (state: string): string =>
  createHash('sha256').update(state).digest('hex').slice(0, FAMILY_CHARACTERS);

/**
 * Whose mark that is, by the name of its lock alone: a directory that was moved, or is mounted elsewhere too, has marks of
 * other families, but whoever holds the lock holds it under every name of the directory.
 */
const lockOf = (mark: string): string => `daemon${mark.slice(FAMILY_CHARACTERS)}`;

/** Ends what this daemon's earlier lives and the daemons that are no more have left. The caller holds this daemon's lock. */
export async function sweepLeftovers(store: Store, paths: Paths): Promise<string[]> {
  const { state, lock: own } = paths;
  const swept = await sweepOf(own);
  for (const name of locksIn(state, 'daemon').filter((each) => each !== own)) {
    const lock = acquireLock(state, name); // held, so that it does not start while its past is cleared away
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

/** Ends all of it and says what that was; nothing is touched while this daemon runs. */
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
