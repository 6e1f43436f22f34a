// The writing side of the store on the main thread: admits statements, follows the health of the disk, says goodbye.
// While the disk is full it tries again every second; who has waited two seconds for a commit is told no.

import { TroupeError } from '../protocol/failures.ts';
import type { Health, News, WriterSettings } from './messages.ts';
import { operation } from './operation.ts';
import { pack } from './packing.ts';
import { createQueue, type Place } from './queue.ts';
import type { Params, WriteName } from './statements.ts';
import { startThread } from './thread.ts';

const PATIENCE_MS = 2_000;
const RETRY_MS = 1_000;
const GOODBYE_MS = 5_000;

export type RecorderOptions = {
  /** Told of a `write` that SQLite refused: a mistake of its caller, not of the disk. */
  readonly onFault?: (name: WriteName, message: string) => void;
  readonly queueOps?: number;
  readonly queueBytes?: number;
};

export type Recorder = Awaited<ReturnType<typeof startRecorder>>;

export async function startRecorder(settings: WriterSettings, options: RecorderOptions) {
  const { queueOps = 100_000, queueBytes = 67_108_864, onFault } = options;
  let health: Health = { state: 'ready', message: 'The database is ready.' };
  let dropped = 0;
  let retries: NodeJS.Timeout | undefined;
  let closing: Promise<void> | undefined;
  const listeners = new Set<(health: Health) => void>();
  const queue = createQueue(
    (ops) => thread.tell({ type: 'batch', batch: pack(ops) }),
    (name, message) => {
      dropped += 1;
      onFault?.(name, message);
    },
  );
  const thread = await startThread(settings, onNews, (why) => end(closing !== undefined ? CLOSED : broken(why)));

  function write(name: WriteName, params: Params): void {
    const op = operation(name, params);
    if (refusal()) dropped += 1;
    else queue.add(op);
  }

  function commit(name: WriteName, params: Params, place?: Place): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const op = operation(name, params);
      const refused = refusal();
      if (refused) reject(refused);
      else queue.add(op, { since: performance.now(), resolve, reject }, place);
    });
  }

  function flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (isEnded()) reject(new TroupeError('unavailable', health.message));
      else queue.add(null, { since: performance.now(), resolve: () => resolve(), reject });
    });
  }

  function refusal(): TroupeError | undefined {
    if (isEnded()) return new TroupeError('unavailable', health.message);
    if (closing !== undefined) return new TroupeError('unavailable', CLOSED.message);
    const isOver = queue.ops() >= queueOps || queue.bytes() >= queueBytes;
    if (!isOver || (health.state === 'ready' && queue.awayMs() < PATIENCE_MS)) return undefined;
    return new TroupeError('unavailable', health.state === 'ready' ? stalled(settings.file) : health.message);
  }

  function onNews(news: News): void {
    switch (news.type) {
      case 'health':
        become(news.health);
        break;
      case 'done':
        queue.done(news);
        break;
      case 'busy': // only when closing: until then the thread waits for the lock itself
        queue.undone();
        break;
      case 'full':
        queue.undone();
        queue.expire(performance.now() - PATIENCE_MS, new TroupeError('unavailable', news.message));
        break;
      case 'failed':
        end({ state: 'failed', message: news.message });
    }
  }

  function become(found: Health): void {
    if (found.state === 'full') retries ??= setInterval(queue.retry, RETRY_MS);
    else {
      clearInterval(retries);
      retries = undefined;
    }
    health = found;
    for (const listener of listeners) listener(found);
  }

  function end(found: Health): void {
    if (health.state === 'closed') return;
    become(found);
    dropped += queue.abandon(new TroupeError('unavailable', found.message));
  }

  async function goodbye(): Promise<void> {
    if (!isEnded()) await lastFlush();
    await thread.close(GOODBYE_MS);
    end(CLOSED);
  }

  async function lastFlush(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, GOODBYE_MS);
    });
    const flushed = flush().catch(() => {}); // the disk is full or broken: there is nothing more to wait for
    if (health.state === 'full') queue.retry();
    await Promise.race([flushed, enough]);
    clearTimeout(timer);
  }

  function isEnded(): boolean {
    return health.state === 'failed' || health.state === 'closed';
  }

  return {
    write,
    commit,
    flush,
    health: () => health,
    dropped: () => dropped,
    onHealth(listener: (health: Health) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      closing ??= goodbye();
      return closing;
    },
  };
}

const CLOSED: Health = { state: 'closed', message: 'The database is closed: nothing is recorded any more.' };

const broken = (why: string): Health => ({
  state: 'failed',
  message: `The database thread broke (${why}): restart troupe; it is unknown if the last statements were recorded.`,
});

const stalled = (file: string): string => `The disk of ${file} does not answer: check the disk.`;
