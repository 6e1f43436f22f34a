// Keeps the audit table within its bounds, a thousand rows at a time, so that no batch ever waits long for it.

import type { Database } from 'better-sqlite3';
import { WRITES } from './statements.ts';

const RESTS_MS = 60_000;
const BREATHES_MS = 50;

/** Starts at once, then looks once a minute. Returns how to stop. */
export function startRetention(
  db: Database,
  keep: { readonly rows: number; readonly ageMs: number },
  isIdle: () => boolean,
): () => void {
  const statement = db.prepare(WRITES.pruneAudit);
  let timer = setTimeout(prune, BREATHES_MS);

  function prune(): void {
    const hasMore = isIdle() && pruned() > 0;
    timer = setTimeout(prune, hasMore ? BREATHES_MS : RESTS_MS);
  }

  function pruned(): number {
    try {
      return statement.run(Date.now() - keep.ageMs, keep.rows).changes;
    } catch {
      return 0; // locked or full: the next batch meets the same trouble and reports it
    }
  }

  return () => clearTimeout(timer);
}
