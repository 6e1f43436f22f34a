// Brings a database to this program's schema, one migration per transaction, and refuses one from the future.
// A migration that has been released is never edited: the next change is the next file.

import type { Database } from 'better-sqlite3';
import { TroupeError } from '../protocol/failures.ts';
import { core } from './migrations/001-core.ts';
import { sessions } from './migrations/002-sessions.ts';
import { oauth } from './migrations/003-oauth.ts';
import { asks } from './migrations/004-asks.ts';
import { tasks } from './migrations/005-tasks.ts';
import { refused } from './migrations/006-refused.ts';
import { auditPages } from './migrations/007-audit-pages.ts';

const MIGRATIONS: readonly string[] = [core, sessions, oauth, asks, tasks, refused, auditPages];

export const SCHEMA_VERSION = MIGRATIONS.length;

export function migrate(db: Database): void {
  const found = versionOf(db);
  if (found > SCHEMA_VERSION)
    throw new TroupeError(
      'unsupported',
      `The database ${db.name} was written by a newer troupe (schema ${found}, this one knows ${SCHEMA_VERSION}): ` +
        'install the newer version, or move the file away.',
    );
  for (const [index, sql] of MIGRATIONS.entries()) if (index >= found) apply(db, index + 1, sql);
}

function apply(db: Database, version: number, sql: string): void {
  const step = db.transaction(() => {
    if (versionOf(db) >= version) return; // another process got here while we waited for the lock
    db.exec(sql);
    db.pragma(`user_version = ${version}`);
  });
  step.immediate();
}

const versionOf = (db: Database): number => Number(db.pragma('user_version', { simple: true }));
