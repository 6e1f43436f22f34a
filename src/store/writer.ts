// The writer thread: the only place in the process that writes to the database, so that no lock and no fsync ever
// stops the main thread. It runs one batch at a time, waits out locks itself, and reports what state the disk is in.

import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { ballastIn } from './ballast.ts';
import { batchRunner } from './batch.ts';
import { openDatabase } from './database.ts';
import type { FromWriter, Health, ToWriter, Verdict, WriterSettings } from './messages.ts';
import { migrate } from './migrations.ts';
import type { Packed } from './packing.ts';
import { startRetention } from './retention.ts';
import { refusal, troubleOf } from './trouble.ts';

const READY: Health = { state: 'ready', message: 'The database is ready.' };
const settings: WriterSettings = workerData;
const tell = (message: FromWriter): void => parentPort?.postMessage(message);

try {
  serve(await open());
} catch (error) {
  const { code, message } = refusal(error, settings.file);
  tell({ type: 'refused', code, message });
  parentPort?.close();
}

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
  let health: Health = READY;
  let isClosing = false;
  let underWay: Promise<void> | undefined;

  recover();
  const stopRetention = startRetention(db, settings.keepAudit, () => underWay === undefined);
  parentPort?.on('message', (message: ToWriter) => {
    if (message.type === 'batch') underWay = work(message.batch);
    else void close();
  });
  tell({ type: 'opened' });

  async function work(batch: Packed): Promise<void> {
    const verdict = await patiently(batch);
    if (verdict.type === 'done') recover();
    else report({ state: verdict.type === 'busy' ? 'locked' : verdict.type, message: verdict.message });
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
        checkpoint('PASSIVE'); // what is in the database already may be written over in the WAL
        continue;
      }
      if (verdict.type !== 'busy' || isClosing) return verdict;
      if (performance.now() - since > settings.lockedAfterMs) report({ state: 'locked', message: verdict.message });
      await sleep(jitterMs());
    }
  }

  /** Ready means that the reserve is there too: without it the next full disk would catch us with nothing. */
  function recover(): void {
    const megabytes = Math.ceil((2 * settings.ballastBytes) / 1_048_576);
    report(
      ballast.restore()
        ? READY
        : {
            state: 'full',
            message: `The disk of ${settings.directory} is almost full: free at least ${megabytes} MB there.`,
          },
    );
  }

  function report(found: Health): void {
    if (found.state === health.state && found.message === health.message) return;
    health = found;
    // On a full disk the reserve is for rows: a WAL of the usual length would eat it alone.
    db.pragma(`wal_autocheckpoint = ${found.state === 'full' ? 16 : 1_000}`);
    tell({ type: 'health', health });
  }

  async function close(): Promise<void> {
    isClosing = true;
    await underWay;
    stopRetention();
    checkpoint('TRUNCATE');
    db.close();
    parentPort?.close();
  }

  function checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    try {
      db.pragma(`wal_checkpoint(${mode})`);
    } catch {
      // no room to move it, or another reader: it stays in the WAL, which is as safe
    }
  }
}

function jitterMs(): number {
  return 5 + Math.random() * 45;
}
