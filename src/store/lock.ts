// One holder per name and machine: a lock that the kernel frees when its process dies, however it dies.
// It is an open EXCLUSIVE transaction on an empty database; nothing is ever written to it.

import Sqlite, { type Database } from 'better-sqlite3';
import { prepareFile } from './directory.ts';
import { refusal, troubleOf } from './trouble.ts';

export type Lock = { readonly path: string; release(): void };

/** The lock, or nothing when another process (or this one) holds it. */
export function acquireLock(directory: string, name: string): Lock | undefined {
  const path = prepareFile(directory, `${name}.lock.db`);
  const db = exclusive(path);
  if (!db) return undefined;
  held.add(db);
  return {
    path,
    release() {
      if (held.delete(db)) db.close();
    },
  };
}

// A connection that nobody refers to is closed by the garbage collector, and its lock with it.
const held = new Set<Database>();

function exclusive(path: string): Database | undefined {
  let db: Database | undefined;
  try {
    db = new Sqlite(path, { timeout: 0 });
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (troubleOf(error) === 'busy') return undefined;
    throw refusal(error, path);
  }
}
