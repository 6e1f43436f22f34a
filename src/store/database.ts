// Opens one connection, always with the same pragmas. They are set anew each time because they are not kept in the file:
// better-sqlite3 is built so that a reopened WAL database silently falls back to synchronous=NORMAL.

import Sqlite, { type Database } from 'better-sqlite3';
import { TroupeError } from '../protocol/failures.ts';

/** Below this version two connections could corrupt a WAL database while one of them made a checkpoint. */
const SAFE_SQLITE = [3, 51, 3] as const;

export type DatabaseOptions = {
  readonly readonly?: boolean;
  /** How long SQLite itself blocks the thread for a lock. Small: waiting is done outside, where it can be seen. */
  readonly busyMs?: number;
  /** A bound on the size of the file, in pages of 4 KB. */
  readonly maxPages?: number;
};

export function openDatabase(file: string, options: DatabaseOptions = {}): Database {
  const db = new Sqlite(file, { readonly: options.readonly ?? false, timeout: options.busyMs ?? 25 });
  try {
    assertSafe(db);
    if (!options.readonly) db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    db.pragma('journal_size_limit = 8388608'); // a WAL that grew in a burst shrinks again
    db.pragma('cache_size = -1024');
    if (options.maxPages) db.pragma(`max_page_count = ${options.maxPages}`);
    db.prepare('SELECT count(*) FROM sqlite_schema').get(); // finds out now whether this is a database
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function assertSafe(db: Database): void {
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  if (isOlder(version.split('.').map(Number), SAFE_SQLITE))
    throw new TroupeError(
      'unsupported',
      `SQLite ${version} can corrupt data: install a better-sqlite3 with 3.51.3 or newer.`,
    );
}

export function isOlder(version: readonly number[], than: readonly number[]): boolean {
  for (const [index, part] of than.entries()) {
    const mine = version[index] ?? 0;
    if (mine !== part) return mine < part;
  }
  return false;
}
