// One holder per name and machine: a lock that the kernel frees when its process dies, however it dies.
// It is an open EXCLUSIVE transaction on an empty database; nothing is ever written to it.

import { readdirSync, type Stats, statSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { prepareFile } from './directory.ts';
import { refusal, troubleOf } from './trouble.ts';

/** A process that only asks whether a lock is held takes it for an instant; others wait that long before they give up. */
const INSTANT_MS = 100;
const SUFFIX = '.lock.db';

export type Lock = {
  readonly path: string;
  /** False once its file was removed or replaced: then another process can hold what looks like the same lock. */
  isInPlace(): boolean;
  release(): void;
};

/** The lock, or nothing when another process (or this one) holds it. Waiting blocks this thread. */
export function acquireLock(directory: string, name: string, waitMs = INSTANT_MS): Lock | undefined {
  const path = prepareFile(directory, name + SUFFIX);
  const db = exclusive(path, waitMs);
  if (!db) return undefined;
  held.add(db);
  const taken = statSync(path, { throwIfNoEntry: false }); // its inode is not given away while the database is open
  return {
    path,
    isInPlace: () => taken !== undefined && isSameFile(taken, path),
    release() {
      if (held.delete(db)) db.close();
    },
  };
}

/** A disk that cannot be asked is no proof that the file is gone. */
function isSameFile(known: Stats, path: string): boolean {
  try {
    const found = statSync(path);
    return found.ino === known.ino && found.dev === known.dev;
  } catch (error) {
    return !/^(ENOENT|ENOTDIR)$/.test(String((error as NodeJS.ErrnoException).code));
  }
}

/** Looks the name up before it uses it: names come from rows too, and one that nobody took must lead to no file, here or elsewhere. */
export function isHeld(directory: string, name: string, waitMs = INSTANT_MS): boolean {
  if (!locksIn(directory, name).includes(name)) return false;
  const lock = acquireLock(directory, name, waitMs);
  lock?.release();
  return lock === undefined;
}

/** The names of all locks that were ever taken there, held or free. */
export function locksIn(directory: string, prefix: string): string[] {
  return filesIn(directory)
    .filter((file) => file.startsWith(prefix) && file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return []; // there is no such directory, so no lock in it is held
  }
}

// Referred to from here, because the garbage collector would close an unreferenced connection and free its lock.
const held = new Set<Database>();

function exclusive(path: string, timeout: number): Database | undefined {
  let db: Database | undefined;
  try {
    db = new Sqlite(path, { timeout });
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (troubleOf(error) === 'busy') return undefined;
    throw refusal(error, path);
  }
}
