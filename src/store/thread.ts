// The writer thread as the main thread sees it: how it is started and ended, and what the two say to each other. One batch is
// under way at a time, so batches need no number.

import { Worker } from 'node:worker_threads';
import { type FailureCode, TroupeError } from '../protocol/failures.ts';
import { bundled } from '../protocol/version.ts';
import { holdYoungStill } from '../world/young.ts';
import type { Packed } from './packed.ts';
import type { Health } from './port.ts';

// ── Messages ─────────────────────────────────────────────────────────────────

export type WriterSettings = {
  readonly directory: string;
  readonly file: string;
  readonly ballastBytes: number;
  readonly keepAudit: { readonly rows: number; readonly ageMs: number };
  /** How long a lock of another program may last before it is reported. */
  readonly lockedAfterMs: number;
  /** How long opening waits for a lock of another program. */
  readonly openMs: number;
  readonly maxPages: number;
};

export type ToWriter = { readonly type: 'batch'; readonly batch: Packed } | { readonly type: 'close' };

export type FromWriter =
  | { readonly type: 'opened' }
  | { readonly type: 'refused'; readonly code: FailureCode; readonly message: string }
  | News;

/** What the writer says once the database is open. */
export type News = { readonly type: 'health'; readonly health: Health } | Verdict;

/** `done`: committed, but for the statements in `faults`. Any other: nothing of the batch was recorded. */
export type Verdict =
  | ({ readonly type: 'done' } & Findings)
  | { readonly type: 'busy' | 'full' | 'failed'; readonly message: string };

/** The statements that SQLite refused and those that changed no row, by their index in the batch; all others did. */
export type Findings = { readonly faults: readonly Fault[]; readonly unchanged: readonly number[] };

export type Fault = { readonly index: number; readonly message: string };

// ── The thread ───────────────────────────────────────────────────────────────

// Small, because rows are; the old generation must hold one batch whose largest value may be a whole catalog.
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 };

export type Thread = {
  tell(message: ToWriter): void;
  /** Resolves when the thread has ended by itself, or was ended because that took longer than `ms`. */
  close(ms: number): Promise<void>;
};

function newWorker(workerData: WriterSettings): Worker {
  try {
    return new Worker(bundled('writer'), { workerData, resourceLimits: LIMITS, execArgv: [], name: 'store' });
  } catch (cause) {
    const why = 'the machine allows no further thread; end some programs, or raise ulimit -u';
    throw new TroupeError('unavailable', `The database thread cannot be started: ${why}.`, { cause });
  }
}

/** Resolves when the database is open. `onEnd` is called once, with the reason if the thread broke. */
export async function startThread(
  settings: WriterSettings,
  onNews: (news: News) => void,
  onEnd: (why: string) => void,
): Promise<Thread> {
  const worker = newWorker(settings);
  worker.once('online', holdYoungStill);
  let why = 'it ended';
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  worker.on('error', (error) => {
    why = error instanceof Error ? error.message : String(error);
  });
  const thread: Thread = {
    tell: (message) => worker.postMessage(message, message.type === 'batch' ? [message.batch.bytes.buffer] : []),
    async close(ms) {
      worker.postMessage({ type: 'close' } satisfies ToWriter);
      const backstop = setTimeout(() => void worker.terminate(), ms);
      await ended;
      clearTimeout(backstop);
    },
  };

  return new Promise((resolve, reject) => {
    worker.on('message', (message: FromWriter) => {
      if (message.type === 'opened') resolve(thread);
      else if (message.type === 'refused') reject(new TroupeError(message.code, message.message));
      else onNews(message);
    });
    void ended.then(() => {
      reject(new TroupeError('internal', `The database thread did not start: ${why}.`));
      onEnd(why);
    });
  });
}
