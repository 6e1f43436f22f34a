// The writer thread as seen from the main thread: started, spoken to, and gone.

import { Worker } from 'node:worker_threads';
import { TroupeError } from '../protocol/failures.ts';
import type { FromWriter, News, ToWriter, WriterSettings } from './messages.ts';

// A worker cannot run TypeScript on Node 20: when the sources run, as in the tests, it is taken from the build.
const WRITER = new URL(
  import.meta.url.endsWith('.ts') ? '../../dist/src/store/writer.js' : './writer.js',
  import.meta.url,
);

// Small, because rows are; the old generation must hold one batch whose largest value may be a whole catalog.
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 };

export type Thread = {
  tell(message: ToWriter): void;
  /** Settles when the thread has ended by itself, or was ended because it took longer than `ms`. */
  close(ms: number): Promise<void>;
};

/** Resolves when the database is open. `onEnd` is called once, with the reason if the thread broke. */
export function startThread(
  settings: WriterSettings,
  onNews: (news: News) => void,
  onEnd: (why: string) => void,
): Promise<Thread> {
  const worker = new Worker(WRITER, { workerData: settings, resourceLimits: LIMITS, execArgv: [], name: 'store' });
  let why = 'it ended';
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  worker.on('error', (error) => {
    why = error instanceof Error ? error.message : String(error);
  });
  const thread: Thread = {
    tell: (message) => worker.postMessage(message),
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
