// The database, as somebody may have left it: rows of every table that hold anything. A daemon that starts on them must start, serve,
// and never send or show what it cannot read.

import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { headers } from 'nats';
import type { Daemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { values } from '../arbitraries/messages.ts';
import { stage, type Target } from '../target.ts';

/**
 * A row as troupe wrote it, with a few cells changed; of a table that has none, all of them. Tables, rows and columns are not known
 * when an input is drawn: its numbers choose by remainder.
 */
type Row = {
  readonly table: number;
  readonly like: number;
  readonly changes: readonly number[];
  readonly cells: readonly Cell[];
};
type Cell = { readonly text: string; readonly number: number; readonly isNull: boolean };

/** The directory's own identity: with another one it is another directory, which is refused with a word. */
const IDENTITY = ['meta'];
const COLUMNS = 40;

const text = fc.oneof(
  fc.constantFrom(
    '',
    '_',
    'echo',
    'victim',
    'open',
    'queued',
    'dispatched',
    'working',
    'tools',
    '{}',
    '[]',
    '{"a":',
    'http',
  ),
  fc.constantFrom('2025-11-25', 'troupe.ev.echo.state.ready', 'a b', '>', 'x'.repeat(5_000), 'x'.repeat(100_000)),
  values.map((value) => JSON.stringify(value) ?? ''),
);
const number = fc.oneof(fc.constantFrom(0, 1, -1, 2 ** 31, 2 ** 53 - 1, -(2 ** 53), 1_800_000_000_000), fc.integer());
const cell = fc.record({ text, number, isNull: fc.nat(9).map((chance) => chance === 0) });

export const rows: Target<Row> = {
  name: 'rows',
  inputs: fc.record({
    table: fc.nat(),
    like: fc.nat(),
    changes: fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
    cells: fc.array(cell, { minLength: COLUMNS, maxLength: COLUMNS }),
  }),
  batch: 20,
  stopsDaemon: true,
  async open({ d }) {
    await leaveRows(d);
    return stage(async (inputs) => {
      const file = join(d.state, 'database', 'troupe.db');
      await d.down();
      copyFileSync(file, `${file}.before`);
      try {
        plantAll(file, inputs);
        await d.start();
        for (const subject of ['troupe.inbox', 'troupe.task.list', 'troupe.list.victim.tools'])
          await eventually(() => d.request(subject), 10_000); // the bus comes a little later
      } catch (error) {
        await d.kill();
        renameSync(`${file}.before`, file); // so that fewer rows can be tried
        for (const rest of ['-wal', '-shm']) rmSync(`${file}${rest}`, { force: true });
        await d.start();
        throw error;
      }
    });
  },
};

/** Something of everything, as a daemon leaves it: tasks that have ended and that have not, a session, an open question. */
async function leaveRows(d: Daemon): Promise<void> {
  for (const tool of ['counters', 'nothing'])
    await d.request(`troupe.call.victim.${tool}`, {}, { headers: { 'Troupe-Task': '1' } });
  const nc = await d.nats();
  nc.publish('troupe.call.puppet.anything', '{}', { reply: '_INBOX.nobody', headers: taskHeader() });
  nc.publish('troupe.call.asks.ask', '{}', { reply: '_INBOX.nobody' });
  await eventually(async () => (await d.request('troupe.inbox')).data.length > 0, 10_000);
}

function taskHeader() {
  const all = headers();
  all.set('Troupe-Task', '1');
  return all;
}

function plantAll(file: string, inputs: readonly Row[]): void {
  const database = new Sqlite(file);
  database.pragma('foreign_keys = OFF');
  const tables = tablesOf(database);
  const planted = inputs.filter((row) => plant(database, tables, row)).length;
  database.close();
  if (inputs.length > 100 && planted === 0) throw new Error('no row was taken, so that nothing was tried');
}

type Column = { readonly name: string; readonly type: string; readonly pk: number };
type Table = { readonly name: string; readonly columns: readonly Column[] };

function tablesOf(database: Sqlite.Database): Table[] {
  const names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  return names
    .filter((name) => !name.startsWith('sqlite_') && !IDENTITY.includes(name))
    .map((name) => {
      const columns = database.pragma(`table_info(${name})`) as Column[];
      return { name, columns: columns.filter(({ pk, type }) => !(pk === 1 && type === 'INTEGER')) };
    });
}

/** Whether the table has taken it: a column may want to be unique, or one of a few words. */
function plant(database: Sqlite.Database, tables: readonly Table[], { table, like, changes, cells }: Row): boolean {
  const { name, columns } = tables[table % tables.length] as Table;
  const names = columns.map((column) => column.name);
  const known = database.prepare(`SELECT ${names} FROM ${name}`).raw().all() as unknown[][];
  const before = known[like % (known.length || 1)];
  const changed = new Set(changes.map((change) => change % columns.length));
  const written = columns.map(({ type, pk, name: column }, at) => {
    if (before && !changed.has(at) && pk === 0 && column !== 'id' && column !== 'message_id') return before[at];
    return boundValue(cells[at] as Cell, type);
  });
  try {
    database.prepare(`INSERT INTO ${name} (${names}) VALUES (${names.map(() => '?')})`).run(written);
    return true;
  } catch {
    return false;
  }
}

function boundValue({ text, number, isNull }: Cell, type: string): string | number | bigint | Buffer | null {
  if (isNull) return null;
  if (type === 'INTEGER') return BigInt(Math.trunc(number));
  return type === 'BLOB' ? Buffer.from(text) : text;
}
