// What a SQLite error means for us, and the one sentence that says so.
// An outage of the disk is a state that passes; only damage is final.

import { TroupeError } from '../protocol/failures.ts';
import { holderOf } from './holder.ts';

/** busy: another program writes · full: the disk refuses · failed: damage, final · statement: only that statement is wrong */
export type Trouble = 'busy' | 'full' | 'failed' | 'statement';

export function troubleOf(error: unknown): Trouble {
  const code = sqliteCode(error);
  if (/^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)) return 'busy';
  if (/^SQLITE_(CORRUPT|NOTADB|READONLY_DBMOVED|MISUSE|INTERNAL)/.test(code)) return 'failed';
  if (/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|NOMEM|PERM)/.test(code)) return 'full';
  return 'statement';
}

export function sentenceOf(error: unknown, file: string): string {
  if (isNotBuilt(error)) return NOT_BUILT;
  const code = sqliteCode(error);
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return `The database ${file} is corrupt: move it away, with its -wal and -shm files, and start again.`;
  switch (troubleOf(error)) {
    case 'busy':
      return `The database ${file} is locked by ${holderOf(file)}; recording goes on by itself.`;
    case 'full':
      return code === 'SQLITE_FULL'
        ? `The disk is full, so ${file} cannot grow: free some space there; recording goes on by itself.`
        : `The database ${file} cannot be written (${code}): check its disk and that its directory is yours to write.`;
    case 'failed':
      return `The database ${file} cannot be used any more (${code}): restart troupe.`;
    case 'statement':
      return `The database ${file} refused a statement: ${error instanceof Error ? error.message : error}.`;
  }
}

/** The error as the rest of troupe sees it. */
export function refusal(error: unknown, file: string): TroupeError {
  if (error instanceof TroupeError) return error;
  const code = troubleOf(error) === 'statement' ? 'internal' : 'unavailable';
  return new TroupeError(code, sentenceOf(error, file), { cause: error });
}

/** What to do where npm could neither fetch SQLite for this Node nor compile it. */
export const NOT_BUILT =
  'SQLite is not built for this Node: run `npm rebuild better-sqlite3`, which takes a C++ compiler, make and Python 3.';

export const isNotBuilt = (error: unknown): boolean =>
  error instanceof Error && (/bindings file/.test(error.message) || sqliteCode(error) === 'ERR_DLOPEN_FAILED');

function sqliteCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
