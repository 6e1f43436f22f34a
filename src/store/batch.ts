// Runs a batch in one IMMEDIATE transaction: `done` means that the batch is on the disk.
// A statement that SQLite refuses undoes only itself; the others of its batch are committed.

import type { Database, Statement } from 'better-sqlite3';
import { sentence } from '../protocol/failures.ts';
import { type Packed, unpacked } from './packed.ts';
import { arityOf, type Value, WRITES, type WriteName } from './statements.ts';
import type { Fault, Verdict } from './thread.ts';
import { sentenceOf, troubleOf } from './trouble.ts';

/** So many rows in one statement take two thirds of the time of as many statements. */
const GROUP = 32;
/** A statement that ends in its tuple of values can be given more tuples, and then changes as many rows. */
const TUPLE = /\((?:\?, )*\?\)$/;
const MAY_CHANGE_NOTHING = 'INSERT OR IGNORE';

type Found = { readonly faults: Fault[]; readonly unchanged: number[] };
/** Statements of one name; `first` is the index of the first one in its batch. */
type Many = { name: WriteName; values: Value[]; first: number; group: number };

export function batchRunner(db: Database): (batch: Packed) => Verdict {
  // IMMEDIATE, because a transaction that reads first and then wants to write is refused at once when others write.
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const prepared = new Map<string, Statement>();

  return (batch) => {
    try {
      begin.run();
      const found = runAll(batch);
      commit.run();
      return { type: 'done', ...found };
    } catch (error) {
      return undo(error);
    }
  };

  function runAll(batch: Packed): Found {
    const values = unpacked(batch);
    const found: Found = { faults: [], unchanged: [] };
    let first = 0;
    let at = 0;
    for (const [name, count] of batch.runs) {
      if (name !== null) {
        const to = at + count * arityOf[name];
        runMany({ name, values: values.slice(at, to), first, group: groupOf(WRITES[name]) }, found);
        at = to;
      }
      first += count;
    }
    return found;
  }

  function runMany({ name, values, first, group }: Many, found: Found): void {
    const arity = arityOf[name];
    const count = values.length / arity;
    for (let nth = 0, size = 1; nth < count; nth += size) {
      size = count - nth >= group ? group : 1;
      const params = values.slice(nth * arity, (nth + size) * arity);
      try {
        if (statement(name, size).run(params).changes === 0) found.unchanged.push(first + nth);
      } catch (error) {
        if (troubleOf(error) !== 'statement' || !db.inTransaction) throw error;
        if (size === 1) found.faults.push({ index: first + nth, message: sentence(error) });
        else runMany({ name, values: params, first: first + nth, group: 1 }, found); // one of them is at fault
      }
    }
  }

  function undo(error: unknown): Verdict {
    try {
      if (db.inTransaction) db.exec('ROLLBACK');
    } catch (worse) {
      return { type: 'failed', message: sentenceOf(worse, db.name) };
    }
    const trouble = troubleOf(error);
    return { type: trouble === 'statement' ? 'failed' : trouble, message: sentenceOf(error, db.name) };
  }

  function statement(name: WriteName, size: number): Statement {
    const key = size === 1 ? name : `${name} ${size}`;
    const known = prepared.get(key) ?? db.prepare(grouped(WRITES[name], size));
    prepared.set(key, known);
    return known;
  }
}

const groupOf = (sql: string): number => (TUPLE.test(sql) && !sql.startsWith(MAY_CHANGE_NOTHING) ? GROUP : 1);

const grouped = (sql: string, size: number): string =>
  sql.replace(TUPLE, (tuple) => Array.from({ length: size }, () => tuple).join(', '));
