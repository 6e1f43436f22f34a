// What a daemon that was killed leaves running: its servers, and its nats-server. The next daemon ends the first and
// adopts the second; whoever wants nothing running any more ends both.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stopLeftBroker } from './bus/managed.ts';
import type { Paths } from './config/paths.ts';
import { sweep } from './servers/sweep.ts';
import { acquireLock } from './store/lock.ts';
import { openStore } from './store/store.ts';

/** Every daemon on a state directory marks its children alike, so that the next one finds them. */
export const markerOf = ({ state }: Paths): string => createHash('sha256').update(state).digest('hex').slice(0, 16);

/** Ends all of it and says what that was; nothing is touched while a daemon runs. */
export async function endLeftovers(paths: Paths): Promise<string[]> {
  if (!existsSync(paths.database)) return [];
  const lock = acquireLock(paths.state, 'daemon');
  if (!lock) return [];
  try {
    const store = await openStore(paths.database);
    const swept = await sweep(store, markerOf(paths));
    await store.close();
    return (await stopLeftBroker(paths.broker)) ? [...swept, 'nats-server'] : swept;
  } finally {
    lock.release();
  }
}
