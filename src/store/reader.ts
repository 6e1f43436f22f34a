// Reads on the main thread, on a connection of its own that cannot write. A WAL reader never waits for the writer,
// and queries are small, so they are answered at once instead of through a promise.

import type { Database, Statement } from 'better-sqlite3';
import { TroupeError } from '../protocol/failures.ts';
import { openDatabase } from './database.ts';
import { type Params, READS, type ReadName } from './statements.ts';
import { refusal } from './trouble.ts';

export type Reader = {
  all<Row>(name: ReadName, params?: Params): Row[];
  get<Row>(name: ReadName, params?: Params): Row | undefined;
  close(): void;
};

/** Opens its connection at the first read. */
export function createReader(file: string): Reader {
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
