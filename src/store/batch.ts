// Runs a batch in one IMMEDIATE transaction: when it says done, the batch is on the disk.
// A statement that SQLite refuses undoes only itself; the others of its batch are committed.

import type { Database, Statement } from 'better-sqlite3';
import { sentence } from '../failures.ts';
import type { Fault, Verdict } from './messages.ts';
import { type Op, WRITES, type WriteName } from './statements.ts';
import { sentenceOf, troubleOf } from './trouble.ts';

export function batchRunner(db: Database): (ops: readonly (Op | null)[]) => Verdict {
  // IMMEDIATE, because a transaction that reads first and then wants to write is refused at once when others write.
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const prepared = new Map<WriteName, Statement>();

  return (ops) => {
    try {
      begin.run();
      const faults = runAll(ops);
      commit.run();
      return { type: 'done', faults };
    } catch (error) {
      return undo(error);
    }
  };

  function runAll(ops: readonly (Op | null)[]): Fault[] {
    const faults: Fault[] = [];
    for (const [index, op] of ops.entries()) {
      try {
        if (op) statement(op.name).run(op.params);
      } catch (error) {
        if (troubleOf(error) !== 'statement' || !db.inTransaction) throw error;
        faults.push({ index, message: sentence(error) });
      }
    }
    return faults;
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

  function statement(name: WriteName): Statement {
    const known = prepared.get(name) ?? db.prepare(WRITES[name]);
    prepared.set(name, known);
    return known;
  }
}
