// The store on SQLite: one file per state directory. Statements go to one writer thread in groups; reads are answered here, on
// a connection of their own that cannot write: a WAL reader never waits for the writer, and the queries are small.

import type { Database, Statement } from 'better-sqlite3';
import { TroupeError } from '../protocol/failures.ts';
import { openDatabase } from './database.ts';
import { prepareFile } from './directory.ts';
import type { Reads, Store } from './port.ts';
import { type RecorderOptions, startRecorder } from './recorder.ts';
import { READS, type ReadName } from './statements.ts';
import { refusal } from './trouble.ts';

export type { AuditRecord } from './audit.ts';
export type { Health, Priority, Reads, Store, Writes } from './port.ts';
export type {
  AuditRow,
  CatalogRow,
  EventRow,
  OutboxRow,
  ProcessRow,
  RefusedRow,
  SessionRow,
  StreamRow,
} from './rows.ts';
export type { Params, ReadName, WriteName } from './statements.ts';

export type StoreOptions = RecorderOptions & {
  readonly keepAudit?: { readonly rows: number; readonly ageMs: number };
  /** The size of the reserve that is given up when the disk is full. */
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
    write: (name, params) => recorder.write(name, params),
    note: (record) => recorder.note(record),
    commit: (name, params, priority) => recorder.commit(name, params, priority),
    flush: () => recorder.flush(),
    onHealth: (listener) => recorder.onHealth(listener),
    all: reader.all,
    get: reader.get,
    get health() {
      return recorder.health;
    },
    get dropped() {
      return recorder.dropped;
    },
    async close() {
      reader.close(); // first, because a reader keeps the last checkpoint from emptying the WAL
      await recorder.close();
    },
  };
}

/** Opens its connection at the first read. */
function createReader(file: string): Reads & { close(): void } {
  let db: Database | undefined;
  let isClosed = false;
  const prepared = new Map<ReadName, Statement>();

  function ask<Answer>(name: ReadName, query: (statement: Statement) => unknown): Answer {
    try {
      return query(statement(name)) as Answer;
    } catch (error) {
      throw refusal(error, file);
    }
  }

  function statement(name: ReadName): Statement {
    if (isClosed) throw new TroupeError('unavailable', `The database ${file} is closed.`);
    db ??= openDatabase(file, { readonly: true });
    const known = prepared.get(name) ?? db.prepare(READS[name]);
    prepared.set(name, known);
    return known;
  }

  return {
    all: (name, params = []) => ask(name, (statement) => statement.all(params)),
    get: (name, params = []) => ask(name, (statement) => statement.get(params)),
    close() {
      isClosed = true;
      prepared.clear();
      db?.close();
      db = undefined;
    },
  };
}
