// The port of the store: all that the rest of troupe knows of it. Code that needs rows is given a `Store` and names statements;
// only the code that opens the store knows where the rows lie: in a SQLite file, or in the memory of a simulator.

import type { AuditRecord } from './audit.ts';
import type { Params, ReadName, WriteName } from './statements.ts';

/** `full` and `locked` pass by themselves; after `failed` and `closed` nothing is recorded any more. */
export type Health = { readonly state: 'ready' | 'full' | 'locked' | 'failed' | 'closed'; readonly message: string };

/** A `first` statement overtakes all queued ones: for a heartbeat, on which no other depends and which is worthless when late. */
export type Priority = 'first';

/** Reads are synchronous and see every statement whose `commit` has resolved, of this process or of another one. */
export type Reads = {
  all<Row>(name: ReadName, params?: Params): Row[];
  get<Row>(name: ReadName, params?: Params): Row | undefined;
};

/**
 * Statements take effect in the order in which they were given, and one that is refused undoes no other. Those given right
 * after each other share a transaction, unless they are too large together for one batch.
 */
export type Writes = {
  /** Recorded soon; a crash may lose it. Dropped, and counted, when the queue is at its bound while the disk refuses. */
  write(name: WriteName, params: Params): void;
  /** Adds to the audit, as `write` does, but many records at a time: in a tenth of a second, or with the next flush. */
  note(record: AuditRecord): void;
  /**
   * Resolves when the statement survives a crash, with whether it changed any row: a compare-and-set is one commit. Rejected
   * means not recorded, unless the sentence says that this is unknown.
   */
  commit(name: WriteName, params: Params, priority?: Priority): Promise<boolean>;
  /** Resolves when all that was written before is committed. */
  flush(): Promise<void>;
};

export type Store = Reads &
  Writes & {
    readonly health: Health;
    /** How many statements given to `write`, and records given to `note`, were not recorded. */
    readonly dropped: number;
    /** Returns how to stop listening. */
    onHealth(listener: (health: Health) => void): () => void;
    /** Records what is queued, within some seconds; what the disk refuses until then is dropped or rejected. */
    close(): Promise<void>;
  };
