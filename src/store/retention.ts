// Keeps the tables that only grow within their bounds, a thousand rows at a time, so that no batch ever waits long for it.

import type { Database, Statement } from 'better-sqlite3';
import { WRITES } from './statements.ts';

const RESTS_MS = 60_000;
const BREATHES_MS = 50;
const BUSY_MS = 200;

const HOUR_MS = 3_600_000;
/** Whoever wants to resume a stream does so soon; an ended session is kept until every daemon has seen its end. */
const EVENTS = { rows: 100_000, ageMs: HOUR_MS };
const LARGE_MS = 600_000;
const STREAMS_MS = 24 * HOUR_MS;
/** An ask that has ended still says who answered it. */
const ASKS_MS = 24 * HOUR_MS;

/** Starts at once, then looks once a minute. Returns how to stop. */
export function startRetention(
  db: Database,
  keep: { readonly rows: number; readonly ageMs: number },
  isIdle: () => boolean,
): () => void {
  const bounds: [Statement, () => number[]][] = [
    [db.prepare(WRITES.pruneAudit), () => [Date.now() - keep.ageMs, keep.rows]],
    [db.prepare(WRITES.pruneEvents), () => [Date.now() - EVENTS.ageMs, EVENTS.rows]],
    [db.prepare(WRITES.pruneLargeEvents), () => [Date.now() - LARGE_MS]],
    [db.prepare(WRITES.pruneStreams), () => [Date.now() - STREAMS_MS]],
    [db.prepare(WRITES.pruneSessions), () => [Date.now() - HOUR_MS]],
    [db.prepare(WRITES.pruneAsks), () => [Date.now() - ASKS_MS]],
    [db.prepare(WRITES.pruneUsage), () => [Date.now() - HOUR_MS]],
  ];
  let timer = setTimeout(prune, BREATHES_MS);

  function prune(): void {
    if (!isIdle()) timer = setTimeout(prune, BUSY_MS);
    else timer = setTimeout(prune, pruned() > 0 ? BREATHES_MS : RESTS_MS);
  }

  function pruned(): number {
    try {
      return Math.max(...bounds.map(([statement, values]) => statement.run(...values()).changes));
    } catch {
      return 0; // locked or full: the next batch meets the same trouble and reports it
    }
  }

  return () => clearTimeout(timer);
}
