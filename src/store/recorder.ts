// The writing half of the store on the main thread: admits statements, follows the health of the disk, says goodbye.
// While the disk is full it is tried again every second; a commit that has waited two seconds for it is rejected.

import { TroupeError } from '../protocol/failures.ts';
import { realWorld, type World } from '../world/world.ts';
import { Audit, type AuditRecord } from './audit.ts';
import { pack } from './packed.ts';
import type { Health, Priority, Writes } from './port.ts';
import { operation, Queue, type SizedOp } from './queue.ts';
import type { Params, WriteName } from './statements.ts';
import { type News, startThread, type Thread, type WriterSettings } from './thread.ts';

const PATIENCE_MS = 2_000;
const RETRY_MS = 1_000;
const GOODBYE_MS = 5_000;

export type RecorderOptions = {
  /** Told of a `write` that SQLite refused: a mistake of its caller, not of the disk. */
  readonly onFault?: (name: WriteName, message: string) => void;
  readonly queueOps?: number;
  readonly queueBytes?: number;
  readonly world?: World;
};

export async function startRecorder(settings: WriterSettings, options: RecorderOptions): Promise<Recorder> {
  const recorder = new Recorder(settings, options);
  await recorder.start();
  return recorder;
}

export class Recorder implements Writes {
  health: Health = { state: 'ready', message: 'The database is ready.' };
  dropped = 0;
  readonly #settings: WriterSettings;
  readonly #world: World;
  readonly #maxOps: number;
  readonly #maxBytes: number;
  readonly #queue: Queue;
  readonly #audit: Audit;
  readonly #listeners = new Set<(health: Health) => void>();
  #thread: Thread | undefined;
  #stopRetries: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: WriterSettings, options: RecorderOptions) {
    this.#settings = settings;
    this.#world = options.world ?? realWorld;
    this.#maxOps = options.queueOps ?? 100_000;
    this.#maxBytes = options.queueBytes ?? 67_108_864;
    this.#queue = new Queue({
      world: this.#world,
      post: (ops) => this.#thread?.tell({ type: 'batch', batch: pack(ops) }),
      onFault: ({ name, weight }, message) => {
        this.dropped += weight;
        options.onFault?.(name, message);
      },
    });
    this.#audit = new Audit(this.#world, (page, records) =>
      this.#write(operation('addAuditPage', page, records), { isDue: true }),
    );
  }

  async start(): Promise<void> {
    this.#thread = await startThread(
      this.#settings,
      (news) => this.#hear(news),
      (why) => this.#end(this.#closing !== undefined ? CLOSED : broken(why)),
    );
  }

  // ── Statements ─────────────────────────────────────────────────────────────

  write(name: WriteName, params: Params): void {
    this.#write(operation(name, params));
  }

  #write(op: SizedOp, manner?: { readonly isDue: boolean }): void {
    if (this.#refusal()) this.dropped += op.weight;
    else this.#queue.add(op, manner);
  }

  note(record: AuditRecord): void {
    this.#audit.note(record);
  }

  commit(name: WriteName, params: Params, priority?: Priority): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const op = operation(name, params);
      const refused = this.#refusal();
      if (refused) reject(refused);
      else this.#queue.add(op, { waiter: { since: this.#world.now(), resolve, reject }, priority });
    });
  }

  flush(): Promise<void> {
    this.#audit.turn();
    return new Promise((resolve, reject) => {
      if (this.#isEnded()) reject(new TroupeError('unavailable', this.health.message));
      else this.#queue.add(null, { waiter: { since: this.#world.now(), resolve: () => resolve(), reject } });
    });
  }

  #refusal(): TroupeError | undefined {
    if (this.#isEnded()) return new TroupeError('unavailable', this.health.message);
    if (this.#closing !== undefined) return new TroupeError('unavailable', CLOSED.message);
    const isOver = this.#queue.ops >= this.#maxOps || this.#queue.bytes >= this.#maxBytes;
    const isReady = this.health.state === 'ready';
    if (!isOver || (isReady && this.#queue.awayMs < PATIENCE_MS)) return undefined;
    return new TroupeError('unavailable', isReady ? stalled(this.#settings.file) : this.health.message);
  }

  #isEnded(): boolean {
    return this.health.state === 'failed' || this.health.state === 'closed';
  }

  // ── News of the writer ─────────────────────────────────────────────────────

  #hear(news: News): void {
    switch (news.type) {
      case 'health':
        this.#become(news.health);
        break;
      case 'done':
        this.#queue.done(news);
        break;
      case 'busy': // only when closing: until then the thread waits for the lock itself
        this.#queue.undone();
        break;
      case 'full':
        this.#queue.undone();
        this.#queue.expire(this.#world.now() - PATIENCE_MS, new TroupeError('unavailable', news.message));
        break;
      case 'failed':
        this.#end({ state: 'failed', message: news.message });
    }
  }

  #become(health: Health): void {
    if (health.state === 'full') this.#stopRetries ??= this.#world.every(RETRY_MS, () => this.#queue.retry());
    else {
      this.#stopRetries?.();
      this.#stopRetries = undefined;
    }
    this.health = health;
    for (const listener of this.#listeners) listener(health);
  }

  #end(health: Health): void {
    if (this.health.state === 'closed') return;
    this.#become(health);
    this.dropped += this.#queue.abandon(new TroupeError('unavailable', health.message));
  }

  onHealth(listener: (health: Health) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  // ── Goodbye ────────────────────────────────────────────────────────────────

  close(): Promise<void> {
    this.#closing ??= this.#goodbye();
    return this.#closing;
  }

  async #goodbye(): Promise<void> {
    if (!this.#isEnded()) await this.#lastFlush();
    await this.#thread?.close(GOODBYE_MS);
    this.#end(CLOSED);
  }

  async #lastFlush(): Promise<void> {
    let cancel = (): void => {};
    const enough = new Promise<void>((resolve) => {
      cancel = this.#world.after(GOODBYE_MS, resolve);
    });
    const flushed = this.flush().catch(() => {}); // the disk is full or broken: there is nothing more to wait for
    if (this.health.state === 'full') this.#queue.retry();
    await Promise.race([flushed, enough]);
    cancel();
  }
}

const CLOSED: Health = { state: 'closed', message: 'The database is closed: nothing is recorded any more.' };

const broken = (why: string): Health => ({
  state: 'failed',
  message: `The database thread broke (${why}): restart troupe; it is unknown if the last statements were recorded.`,
});

const stalled = (file: string): string => `The disk of ${file} does not answer: check the disk.`;
