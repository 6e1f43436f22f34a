// Stops a process that writes to a database, between two of its writes: one that is stopped in the middle of a write keeps the
// lock, and then all others wait for it, which is another story (`store-processes.test.ts` tells it).

import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';

/** A lock that others hold for longer than that is the stopped one's. */
const WAIT_MS = 1_000;

export async function stopBetweenWrites(
  signal: (name: 'SIGSTOP' | 'SIGCONT') => unknown,
  database: string,
): Promise<void> {
  for (;;) {
    signal('SIGSTOP');
    if (mayWrite(database)) return;
    signal('SIGCONT');
    await sleep(10); // it ends what it was at
  }
}

function mayWrite(database: string): boolean {
  const db = new Sqlite(database, { timeout: WAIT_MS });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return false;
    throw error;
  } finally {
    db.close();
  }
}
