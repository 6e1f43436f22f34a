// The writer thread: the only place in the process that writes to the database, so that no lock and no fsync ever
// stops the main thread. It runs one batch at a time, waits out locks itself, and reports what state the disk is in.

import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { type Ballast, ballastIn } from './ballast.ts';
import { batchRunner } from './batch.ts';
import { openDatabase } from './database.ts';
import { migrate } from './migrations.ts';
import type { Packed } from './packed.ts';
import type { Health } from './port.ts';
import { WRITES } from './statements.ts';
import type { FromWriter, ToWriter, Verdict, WriterSettings } from './thread.ts';
import { refusal, troubleOf } from './trouble.ts';

const READY: Health = { state: 'ready', message: 'The database is ready.' };
const settings: WriterSettings = workerData;
const tell = (message: FromWriter): void => parentPort?.postMessage(message);

/** Another process may be creating the same database this very moment; its locks are waited for. */
async function open(): Promise<Database> {
  const deadline = performance.now() + settings.openMs;
  for (;;) {
    let db: Database | undefined;
    try {
      db = openDatabase(settings.file, { maxPages: settings.maxPages });
      migrate(db);
      return db;
    } catch (error) {
      db?.close();
      if (troubleOf(error) !== 'busy' || performance.now() > deadline) throw error;
      await sleep(jitterMs());
    }
  }
}

function serve(db: Database): void {
  const run = batchRunner(db);
  const ballast = ballastIn(settings.directory, settings.ballastBytes);
  const disk = watchDisk(db, ballast);
  let isClosing = false;
  let underWay: Promise<void> | undefined;

  disk.recovered();
  const stopRetention = startRetention(db, () => underWay === undefined);
  parentPort?.on('message', (message: ToWriter) => {
    if (message.type === 'batch') underWay = work(message.batch);
    else void close();
  });
  tell({ type: 'opened' });

  async function work(batch: Packed): Promise<void> {
    const verdict = await patiently(batch);
    if (verdict.type === 'done') disk.recovered();
    else disk.report({ state: verdict.type === 'busy' ? 'locked' : verdict.type, message: verdict.message });
    underWay = undefined;
    tell(verdict);
  }

  /** Waits for as long as another program holds the lock. A full disk is for the main thread to wait out: it may give up. */
  async function patiently(batch: Packed): Promise<Verdict> {
    const since = performance.now();
    let mayMakeRoom = true;
    for (;;) {
      const verdict = run(batch);
      if (verdict.type === 'full' && mayMakeRoom) {
        mayMakeRoom = false;
        ballast.release();
        checkpoint(db, 'PASSIVE'); // frames that are in the database already may be written over in the WAL
        continue;
      }
      if (verdict.type !== 'busy' || isClosing) return verdict;
      if (performance.now() - since > settings.lockedAfterMs)
        disk.report({ state: 'locked', message: verdict.message });
      await sleep(jitterMs());
    }
  }

  async function close(): Promise<void> {
    isClosing = true;
    await underWay;
    stopRetention();
    checkpoint(db, 'TRUNCATE');
    db.close();
    parentPort?.close();
  }
}

// ── Health ───────────────────────────────────────────────────────────────────

function watchDisk(db: Database, ballast: Ballast) {
  let health: Health = READY;

  function report(found: Health): void {
    // Of a lock only the first holder is told: where many write, it is another one at every look.
    if (found.state === health.state && (found.state === 'locked' || found.message === health.message)) return;
    health = found;
    // On a full disk the reserve is for rows: a WAL of the usual length would eat it alone.
    db.pragma(`wal_autocheckpoint = ${found.state === 'full' ? 16 : 1_000}`);
    tell({ type: 'health', health });
  }

  return {
    report,
    /** A batch was committed. Ready means that the reserve is there too: without it the next full disk would find none. */
    recovered(): void {
      const megabytes = Math.ceil((2 * settings.ballastBytes) / 1_048_576);
      const message = `The disk of ${settings.directory} is almost full: free at least ${megabytes} MB there.`;
      report(ballast.restore() ? READY : { state: 'full', message });
    },
  };
}

function checkpoint(db: Database, mode: 'PASSIVE' | 'TRUNCATE'): void {
  try {
    db.pragma(`wal_checkpoint(${mode})`);
  } catch {
    // no room to move it, or another reader: it stays in the WAL, which is as safe
  }
}

// ── Retention: tables that only grow are kept within bounds, so few rows at a time that no batch waits long for it ──

const REST_MS = 60_000;
const BREATH_MS = 50;
const BUSY_MS = 200;

const HOUR_MS = 3_600_000;
/** A host that wants to resume a stream does so soon. */
const EVENTS = { rows: 100_000, ageMs: HOUR_MS };
const LARGE_EVENTS_MS = 600_000;
const STREAMS_MS = 24 * HOUR_MS;
/** The row of an ended session stays until every daemon has seen its end. */
const ENDED_SESSIONS_MS = HOUR_MS;
/** The row of an ended ask says who answered it. */
const ENDED_ASKS_MS = 24 * HOUR_MS;
const USAGE_MS = HOUR_MS;

/** Starts at once, then looks once a minute. Returns how to stop. */
function startRetention(db: Database, isIdle: () => boolean): () => void {
  const { keepAudit } = settings;
  const bounds: [Statement, () => number[]][] = [
    [db.prepare(WRITES.pruneAuditPages), () => [Date.now() - keepAudit.ageMs, keepAudit.rows]],
    [db.prepare(WRITES.pruneAuditRows), () => [Date.now() - keepAudit.ageMs, keepAudit.rows]],
    [db.prepare(WRITES.pruneEvents), () => [Date.now() - EVENTS.ageMs, EVENTS.rows]],
    [db.prepare(WRITES.pruneLargeEvents), () => [Date.now() - LARGE_EVENTS_MS]],
    [db.prepare(WRITES.pruneStreams), () => [Date.now() - STREAMS_MS]],
    [db.prepare(WRITES.pruneSessions), () => [Date.now() - ENDED_SESSIONS_MS]],
    [db.prepare(WRITES.pruneAsks), () => [Date.now() - ENDED_ASKS_MS]],
    [db.prepare(WRITES.pruneUsage), () => [Date.now() - USAGE_MS]],
  ];
  let timer = setTimeout(prune, BREATH_MS);

  function prune(): void {
    if (!isIdle()) timer = setTimeout(prune, BUSY_MS);
    else timer = setTimeout(prune, pruned() > 0 ? BREATH_MS : REST_MS);
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

function jitterMs(): number {
  return 5 + Math.random() * 45;
}

// ── Start: last, because all constants must be known by then ──

open()
  .then(serve)
  .catch((error: unknown) => {
    const { code, message } = refusal(error, settings.file);
    tell({ type: 'refused', code, message });
    parentPort?.close();
  });
