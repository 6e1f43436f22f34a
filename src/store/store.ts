// The store: one SQLite file per state directory. Writes go to one thread in groups, reads are answered here.
// `commit` resolves only when its statement is on the disk; `write` is for what a crash may take with it.

import { prepareFile } from './directory.ts';
import type { Health } from './messages.ts';
import type { Place } from './queue.ts';
import { createReader } from './reader.ts';
import { type RecorderOptions, startRecorder } from './recorder.ts';
import type { Params, ReadName, WriteName } from './statements.ts';

export type { Health } from './messages.ts';
export type { AuditRow, CatalogRow, EventRow, OutboxRow, ProcessRow, SessionRow, StreamRow } from './rows.ts';
export type { Params, ReadName, WriteName } from './statements.ts';

export type Store = {
  /** Recorded soon. Dropped, and counted, only when the queue is at its bound while the disk is full or locked. */
  write(name: WriteName, params: Params): void;
  /** Resolves after the fsync, with whether it changed any row. Rejected means not recorded, unless the sentence says that this is unknown. */
  commit(name: WriteName, params: Params, place?: Place): Promise<boolean>;
  all<Row>(name: ReadName, params?: Params): Row[];
  get<Row>(name: ReadName, params?: Params): Row | undefined;
  /** Resolves when everything written before it is committed. */
  flush(): Promise<void>;
  readonly health: Health;
  /** Statements given to `write` that were not recorded. */
  readonly dropped: number;
  /** Returns how to stop listening. */
  onHealth(listener: (health: Health) => void): () => void;
  /** Records what is left, within some seconds; what the disk still refuses then is dropped or rejected. */
  close(): Promise<void>;
};

export type StoreOptions = RecorderOptions & {
  readonly keepAudit?: { readonly rows: number; readonly ageMs: number };
  /** The reserve that is given up when the disk is full. */
  readonly ballastBytes?: number;
  /** A bound on the size of the file, in pages of 4 KB; 0 is none. */
  readonly maxPages?: number;
};

const DAY_MS = 86_400_000;

export async function openStore(directory: string, options: StoreOptions = {}): Promise<Store> {
  const file = prepareFile(directory, 'troupe.db');
  const recorder = await startRecorder(
    {
      directory,
      file,
      ballastBytes: options.ballastBytes ?? 4_194_304,
      keepAudit: options.keepAudit ?? { rows: 1_000_000, ageMs: 30 * DAY_MS },
      maxPages: options.maxPages ?? 0,
      openMs: 5_000,
      lockedAfterMs: 2_000,
    },
    options,
  );
  const reader = createReader(file);

  return {
    write: recorder.write,
    commit: recorder.commit,
    flush: recorder.flush,
    onHealth: recorder.onHealth,
    all: reader.all,
    get: reader.get,
    get health() {
      return recorder.health();
    },
    get dropped() {
      return recorder.dropped();
    },
    async close() {
      reader.close(); // first, because a reader keeps the last checkpoint from emptying the WAL
      await recorder.close();
    },
  };
}
