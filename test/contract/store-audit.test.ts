// The audit: many records a page, each of which can be asked for as if it were a row of its own, whoever wrote it and whenever.

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { core } from '../../src/store/migrations/001-core.ts';
import { type AuditRecord, type AuditRow, openStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { memoryStore } from '../support/memory-store.ts';
import { scratch } from '../support/scratch.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

/** Records of long ago would be forgotten at once. */
const NOW = Date.now();

const record = (requestId: string, changes: Partial<AuditRecord> = {}): AuditRecord => ({
  at: NOW,
  daemon: 'here',
  door: 'nats',
  principal: 'alice',
  requestId,
  server: 'files',
  method: 'tools/call',
  name: 'read',
  outcome: 'ok',
  code: 0,
  error: '',
  micros: 120,
  bytesIn: 10,
  bytesOut: 20,
  ...changes,
});

const rowOf = ({ requestId, micros, bytesIn, bytesOut, ...same }: AuditRecord) => ({
  ...same,
  request_id: requestId,
  duration_us: micros,
  bytes_in: bytesIn,
  bytes_out: bytesOut,
});
const recent = (store: Store, count: number): AuditRow[] =>
  store.all<AuditRow>('recentAudit', [count, count]).reverse();
const idsOf = (rows: readonly { request_id: string }[]): string[] => rows.map((row) => row.request_id);

async function opened(directory: string, options?: StoreOptions) {
  const store = await openStore(directory, options);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

describe('records', () => {
  it('come back as they were given, whatever is in their texts', async () => {
    await using dir = await scratch();
    await using store = await opened(dir.path);
    const given = [
      record('r1'),
      record('r2', { at: NOW - 100, outcome: 'timeout', code: -32001, error: 'it "said"\n\\nothing\u0000', name: '' }),
      record('"ü€\ud83d\ude00\u2028\\', { server: '__proto__', name: 'constructor', principal: '日本' }),
      record('', { micros: 12_345_678_901, bytesIn: 2 ** 40, bytesOut: 0, daemon: 'there', door: 'ask' }),
      record('r1'),
    ];
    for (const each of given) store.note(each);
    await store.flush();
    expect(recent(store, 10)).toEqual(given.map((each, at) => ({ ...rowOf(each), id: at + 1, page: 1 })));
    expect(store.get('countAudit')).toEqual({ count: 5 });
  });

  it('have an id that is cut where it is longer than anybody may give, or others would have no room', async () => {
    await using dir = await scratch();
    await using store = await opened(dir.path);
    for (const id of ['"'.repeat(70_000), 'next']) store.note(record(id));
    await store.flush();
    expect(idsOf(recent(store, 2))).toEqual(['"'.repeat(1_024), 'next']);
  });

  it('have texts that are cut where a page with them could not be recorded', async () => {
    await using dir = await scratch();
    const faults: string[] = [];
    await using store = await opened(dir.path, { onFault: (_, message) => faults.push(message) });
    const long = '"'.repeat(40_000_000);
    const texts = { daemon: long, door: long, principal: long, server: long, method: long, name: long, outcome: long };
    for (const id of ['one', 'two']) store.note(record(id, { ...texts, error: long }));
    store.note(record('next'));
    await store.flush();
    const [one, two, next] = recent(store, 3);
    const cut = Object.fromEntries(Object.keys(texts).map((key) => [key, '"'.repeat(1_024)]));
    expect([one, two]).toMatchObject(
      ['one', 'two'].map((id) => ({ ...cut, request_id: id, error: long.slice(0, 4_096) })),
    );
    expect(next).toMatchObject({ request_id: 'next', name: 'read', error: '' });
    const db = new Sqlite(join(dir.path, 'troupe.db'), { readonly: true });
    const about = db.prepare('SELECT about FROM audit_pages').pluck().get() as string;
    db.close();
    expect([JSON.parse(about).length, faults]).toEqual([2, []]); // what is cut alike is said once
  });

  it('are recorded without being asked to, within the linger, and lost by a crash before it', async () => {
    const world = simulatedWorld();
    const store = memoryStore(world);
    store.note(record('lost'));
    await world.pass(99);
    store.crash();
    store.note(record('kept'));
    await world.pass(99);
    expect(recent(store, 10)).toEqual([]);
    await world.pass(1);
    expect(idsOf(recent(store, 10))).toEqual(['kept']);
  });

  it('are recorded when the store is closed', async () => {
    await using dir = await scratch();
    const store = await openStore(dir.path);
    store.note(record('last'));
    await store.close();
    await using again = await opened(dir.path);
    expect(idsOf(recent(again, 5))).toEqual(['last']);
  });

  it('fill page after page, with long names that are never alike too, and the newest are found in a few of them', async () => {
    await using dir = await scratch();
    await using store = await opened(dir.path);
    const ids = Array.from({ length: 6_000 }, (_, at) => `${at}-${'x'.repeat(30)}`);
    for (const id of ids)
      store.note(record(id, { name: id.slice(0, 2), error: id.startsWith('5') ? id.repeat(20) : '' }));
    await store.flush();
    const rows = recent(store, 6_000);
    expect(idsOf(rows)).toEqual(ids);
    expect(rows.map(({ id }) => id)).toEqual(ids.map((_, at) => at + 1));
    expect(new Set(rows.map(({ page }) => page)).size).toBeGreaterThan(5);
    expect(idsOf(recent(store, 7))).toEqual(ids.slice(-7));
  });

  it('of several daemons on one file follow each other, and none has the id of another', async () => {
    await using dir = await scratch();
    const stores = await Promise.all([1, 2, 3].map(() => openStore(dir.path)));
    for (let round = 0; round < 20; round++)
      await Promise.all(
        stores.map((store, nth) => {
          for (let at = 0; at <= nth; at++) store.note(record(`${nth}.${round}.${at}`, { daemon: `d${nth}` }));
          return store.flush();
        }),
      );
    const rows = recent(stores[0] as Store, 1_000);
    expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 120 }, (_, at) => at + 1));
    expect(rows.filter(({ daemon }) => daemon === 'd2')).toHaveLength(60);
    for (const store of stores) await store.close();
  });

  it('are counted one by one when the disk takes none', async () => {
    await using dir = await scratch();
    const store = await openStore(dir.path);
    await store.close();
    for (let at = 0; at < 7; at++) store.note(record(`r${at}`));
    await store.flush().catch(() => {});
    expect(store.dropped).toBe(7);
  });
});

describe('whoever reads the file', () => {
  it('finds records by any column in SQL', async () => {
    await using dir = await scratch();
    await using store = await opened(dir.path);
    for (let at = 0; at < 100; at++)
      store.note(record(`r${at}`, { principal: at % 10 ? 'alice' : 'bob', server: `s${at % 3}`, at: NOW + at }));
    await store.flush();
    const db = new Sqlite(join(dir.path, 'troupe.db'), { readonly: true });
    const where = `principal = 'bob' AND server = 's0' AND at >= ${NOW + 30} AND duration_us = 120`;
    const found = db.prepare(`SELECT request_id FROM audit WHERE ${where} ORDER BY id`).pluck().all();
    db.close();
    expect(found).toEqual(['r30', 'r60', 'r90']);
  });

  it('finds the rows of older versions too, also those that an older daemon adds meanwhile', async () => {
    await using dir = await scratch();
    const file = join(dir.path, 'troupe.db');
    const older = new Sqlite(file);
    older.exec(core);
    older.pragma('user_version = 1');
    older.pragma('journal_mode = WAL');
    const columns = Object.keys(rowOf(record('')));
    const insert = older.prepare(`INSERT INTO audit (${columns}) VALUES (${columns.map((name) => `@${name}`)})`);
    insert.run(rowOf(record('old')));
    await using store = await opened(dir.path);
    store.note(record('new'));
    await store.flush();
    insert.run(rowOf(record('of the older daemon')));
    older.close();
    store.note(record('newest'));
    await store.flush();
    const rows = recent(store, 10);
    expect(idsOf(rows)).toEqual(['old', 'new', 'of the older daemon', 'newest']);
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    expect(store.get('countAudit')).toEqual({ count: 4 });
  });
});

it('pages are forgotten whole, the oldest first, by number and by age', async () => {
  await using dir = await scratch();
  const first = await openStore(dir.path);
  for (let page = 0; page < 40; page++) {
    const at = page < 5 ? 1 : Date.now();
    for (let nth = 0; nth < 50; nth++) first.note(record(`${page}.${nth}`, { at }));
    await first.flush();
  }
  await first.close();
  await using store = await opened(dir.path, { keepAudit: { rows: 1_750, ageMs: 60_000 } });
  await eventually(() => expect(store.get('countAudit')).toEqual({ count: 1_750 }));
  expect(recent(store, 5_000)[0]).toMatchObject({ request_id: '5.0', id: 251 });
  await store.close();
  await using fewer = await opened(dir.path, { keepAudit: { rows: 150, ageMs: 60_000 } });
  await eventually(() => expect(fewer.get('countAudit')).toEqual({ count: 150 }));
  expect(idsOf(recent(fewer, 1_000)).at(0)).toBe('37.0');
});

it('keeps what is no two times alike, and what is no number, as records that can be read', async () => {
  await using dir = await scratch();
  await using store = await opened(dir.path);
  const said = Array.from({ length: 300 }, (_, nth) =>
    record(`${nth}`, { outcome: 'rejected', error: `request ${nth} failed` }),
  );
  const among = Array.from({ length: 300 }, (_, nth) => record(`of ${nth % 7}`, { principal: `p${nth % 7}` }));
  for (const each of [...said, ...among, ...said]) store.note(each);
  for (const micros of [Number.NaN, Number.POSITIVE_INFINITY, 0.5, -3]) store.note(record('odd', { micros }));
  await store.flush();
  const rows = recent(store, 1_000);
  expect(rows.slice(0, -4).map(({ request_id, error, principal }) => [request_id, error, principal])).toEqual(
    [...said, ...among, ...said].map(({ requestId, error, principal }) => [requestId, error, principal]),
  );
  expect(rows.slice(-4).map(({ duration_us }) => duration_us)).toEqual([0, 0, 0, -3]);
});
