// Checks answers against their forms, within a budget of time and without holding up the event loop. The thread that does this
// starts with the first check, is replaced when a check takes too long, and ends when there was none for a while.

import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { TroupeError } from '../../protocol/failures.ts';
import { bundled } from '../../protocol/version.ts';
import type { FromValidator, ToValidator } from './validator-thread.ts';

export type Validator = {
  /**
   * A sentence that names the field; nothing when the content is valid. Waiting checks take turns by `who` (such as the server that
   * asked), so that the forms of one server do not hold up those of another for long.
   */
  check(schema: Buffer, content: Buffer, who?: string): Promise<string | undefined>;
  close(): void;
};

type Job = {
  readonly schema: Buffer;
  readonly content: Buffer;
  readonly resolve: (problem: string | undefined) => void;
  readonly reject: (error: TroupeError) => void;
};

const MAX_CONTENT = 1_048_576;
const MAX_WAITING = 64 * 1_048_576;

export function createValidator({ budgetMs = 250, idleMs = 60_000 } = {}): Validator {
  const waiting = new Map<string, Job[]>();
  let waitingBytes = 0;
  let lastWho: string | undefined;
  let running: Job | undefined;
  let thread: Thread | undefined;
  let idle: NodeJS.Timeout | undefined;
  let isClosed = false;

  function add(who: string, job: Job): void {
    if (isClosed) return job.reject(CLOSED);
    if (job.content.length > MAX_CONTENT) return job.resolve('the content must not be larger than 1 MB');
    if (waitingBytes + sizeOf(job) > MAX_WAITING) return job.reject(BUSY);
    waitingBytes += sizeOf(job);
    const line = waiting.get(who);
    if (line) line.push(job);
    else waiting.set(who, [job]);
    next();
  }

  /** The next job of the `who` that has waited longest for a turn; if it has more jobs it goes to the end of the line. */
  function take(): Job | undefined {
    for (const [who, line] of waiting) {
      if (who === lastWho && waiting.size > 1) continue;
      lastWho = who;
      const job = line.shift();
      waiting.delete(who);
      if (line.length > 0) waiting.set(who, line);
      if (job) waitingBytes -= sizeOf(job);
      return job;
    }
    return undefined;
  }

  function next(): void {
    if (running) return;
    running = take();
    clearTimeout(idle);
    if (running) void run(running);
    else idle = setTimeout(letGo, idleMs).unref();
  }

  async function run(job: Job): Promise<void> {
    const verdict = await checkIn(job);
    if ('broken' in verdict) letGo();
    if (!('broken' in verdict)) job.resolve(verdict.problem);
    else if (isClosed) job.reject(CLOSED);
    else if (verdict.sentence) job.resolve(verdict.sentence);
    else job.reject(new TroupeError('internal', `The thread that checks answers broke: ${verdict.broken}.`));
    running = undefined;
    next();
  }

  async function checkIn(job: Job): Promise<Verdict> {
    try {
      if (!thread || thread.isEnded()) thread = startThread(budgetMs);
      return await thread.check(job);
    } catch (error) {
      return brokenBy(error as Error); // there may be no room for a thread, now
    }
  }

  function letGo(): void {
    thread?.end();
    thread = undefined;
  }

  return {
    check: (schema, content, who = '') =>
      new Promise((resolve, reject) => add(who, { schema, content, resolve, reject })),
    close() {
      isClosed = true;
      clearTimeout(idle);
      for (let job = take(); job; job = take()) job.reject(CLOSED);
      letGo();
    },
  };
}

/** The bytes of a job, and a kilobyte for the job itself. */
const sizeOf = ({ schema, content }: Job): number => schema.length + content.length + 1_024;

const CLOSED = new TroupeError('unavailable', 'troupe is going down and checks no more answers');
const BUSY = new TroupeError('busy', 'too many answers wait to be checked: send it again in a second');

type Verdict = { readonly problem: string | undefined } | { readonly broken: string; readonly sentence?: string };

type Thread = {
  /** One at a time. After `broken` the thread is of no more use. */
  check(job: Job): Promise<Verdict>;
  isEnded(): boolean;
  end(): void;
};

const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 };

function startThread(budgetMs: number): Thread {
  const worker = new Worker(bundled('validator-thread'), { resourceLimits: LIMITS, execArgv: [], name: 'validator' });
  let settle: (verdict: Verdict) => void = () => {};
  let stopWatch = () => {};
  let error: Error = new Error('it ended');
  let isEnded = false;
  const ready = new Promise<void>((resolve) => {
    worker.on('message', (message: FromValidator) => {
      if (message.type === 'ready') resolve();
      else if (message.type === 'checked') settle(message);
      else {
        const settleThis = settle;
        stopWatch = watch(budgetMs, () => settleThis(LATE));
      }
    });
    worker.on('exit', () => {
      isEnded = true;
      settle(brokenBy(error));
      resolve();
    });
  });
  worker.on('error', (thrown) => {
    error = thrown instanceof Error ? thrown : new Error(String(thrown));
  });

  return {
    async check({ schema, content }) {
      worker.ref(); // only while a check is waited for does this thread keep the process alive
      const verdict = new Promise<Verdict>((resolve) => {
        settle = resolve;
      });
      if (isEnded) settle(brokenBy(error));
      await ready;
      const message: ToValidator = { schema: new Uint8Array(schema), content: new Uint8Array(content) };
      worker.postMessage(message, [message.schema.buffer as ArrayBuffer, message.content.buffer as ArrayBuffer]);
      const found = await verdict;
      stopWatch();
      worker.unref();
      return found;
    },
    isEnded: () => isEnded,
    end: () => void worker.terminate(),
  };
}

const LATE: Verdict = {
  broken: 'it was late',
  sentence: 'the schema took too long to check; ask the server for a simpler one',
};

function brokenBy(error: Error & { code?: unknown }): Verdict {
  const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return { broken: error.message, ...(isMemory && { sentence: 'the schema took too much memory to check' }) };
}

/**
 * Calls back when the thread has worked for longer than the budget. On a busy machine time passes without work, so what
 * counts is the processor time of the process less what its event loop took, though no more than eight times the budget.
 */
function watch(budgetMs: number, onLate: () => void): () => void {
  const start = { cpu: process.cpuUsage(), loop: performance.eventLoopUtilization(), at: performance.now() };
  let timer = setTimeout(look, budgetMs).unref();
  function look(): void {
    const { user, system } = process.cpuUsage(start.cpu);
    const left = budgetMs - (user + system) / 1000 + performance.eventLoopUtilization(start.loop).active;
    const isLate = left <= 0 || performance.now() - start.at > 8 * budgetMs;
    // An answer that came while the event loop was busy is heard first.
    if (isLate) setImmediate(onLate);
    else timer = setTimeout(look, Math.max(10, left)).unref();
  }
  return () => clearTimeout(timer);
}
