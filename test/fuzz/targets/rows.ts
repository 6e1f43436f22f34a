// The database, as somebody may have left it: rows of every table that hold anything. A daemon that starts on them must start, serve,
// and never send or show what it cannot read.

import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { headers } from 'nats';
import type { Daemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { values } from '../arbitraries/messages.ts';
import { post } from '../house.ts';
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
  batch: 500,
  stopsDaemon: true,
  async open({ d }) {
    await leaveRows(d);
    const file = join(d.state, 'database', 'troupe.db');
    const whole = `${file}.whole`;
    await d.kill();
    const database = new Sqlite(file);
    database.pragma('wal_checkpoint(TRUNCATE)');
    database.close();
    copyFileSync(file, whole);

    async function startOn(inputs: readonly Row[]): Promise<string[]> {
      await d.kill();
      copyFileSync(whole, file);
      for (const rest of ['-wal', '-shm']) rmSync(`${file}${rest}`, { force: true });
      const sessions = plantAll(file, inputs);
      await d.start();
      return sessions;
    }

    return stage(async (inputs) => {
      try {
        const sessions = await startOn(inputs);
        for (const subject of ['troupe.inbox', 'troupe.task.list', 'troupe.list.victim.tools'])
          await eventually(() => mustServe(d, subject), 10_000); // the bus comes a little later
        for (const session of sessions) await mustKnowOrNot(d, session);
      } catch (error) {
        await startOn([]); // so that fewer rows can be tried
        throw error;
      }
    });
  },
};

async function mustServe(d: Daemon, subject: string): Promise<void> {
  const { code, error } = await d.request(subject);
  if (code === 500) throw new Error(`${subject}: ${error}`);
}

/** A host that comes back to a session: it is there, or it is not, and either is said. */
async function mustKnowOrNot(d: Daemon, session: string): Promise<void> {
  const { statusCode, body } = await post(
    `${await d.http()}/mcp`,
    { id: 1, method: 'ping' },
    { 'mcp-session-id': session },
  );
  const text = await body.text();
  if (statusCode >= 500) throw new Error(`a session that was changed: ${statusCode} ${text}`);
}

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

/** Some of the sessions that are there now, by their ids, as far as a header can name them. */
function plantAll(file: string, inputs: readonly Row[]): string[] {
  const database = new Sqlite(file);
  database.pragma('foreign_keys = OFF');
  const tables = tablesOf(database);
  const plantEach = database.transaction(() => inputs.filter((row) => plant(database, tables, row)).length);
  const planted = plantEach();
  const ids = database.prepare('SELECT id FROM sessions ORDER BY rowid DESC LIMIT 50').pluck().all() as string[];
  database.close();
  if (inputs.length > 100 && planted === 0) throw new Error('no row was taken, so that nothing was tried');
  return ids.filter((id) => /^[\x21-\x7e]{1,1000}$/.test(id));
}

type Column = { readonly name: string; readonly type: string; readonly pk: number };
type Table = { readonly name: string; readonly columns: readonly Column[]; readonly rows: readonly unknown[][] };

function tablesOf(database: Sqlite.Database): Table[] {
  const names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  return names
    .filter((name) => !name.startsWith('sqlite_') && !IDENTITY.includes(name))
    .map((name) => {
      const all = database.pragma(`table_info(${name})`) as Column[];
      const columns = all.filter(({ pk, type }) => !(pk === 1 && type === 'INTEGER'));
      const rows = database
        .prepare(`SELECT ${columns.map((column) => column.name)} FROM ${name}`)
        .raw()
        .all();
      return { name, columns, rows: rows as unknown[][] };
    });
}

/** Whether the table has taken it: a column may want to be unique, or one of a few words. */
function plant(database: Sqlite.Database, tables: readonly Table[], { table, like, changes, cells }: Row): boolean {
  const { name, columns, rows: known } = tables[table % tables.length] as Table;
  const names = columns.map((column) => column.name);
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
