// The store in one process: what it records, in which order, and what it refuses with which sentence.

import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { isOlder, openDatabase } from '../../src/store/database.ts';
import { networkFilesystem } from '../../src/store/directory.ts';
import { SCHEMA_VERSION } from '../../src/store/migrations.ts';
import {
  type CatalogRow,
  type OutboxRow,
  openStore,
  type RefusedRow,
  type StoreOptions,
} from '../../src/store/store.ts';
import { sentenceOf } from '../../src/store/trouble.ts';
import { eventually } from '../support/eventually.ts';
import { noted } from '../support/noted.ts';
import { scratch } from '../support/scratch.ts';

async function store(directory: string, options?: StoreOptions) {
  const opened = await openStore(directory, options);
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() });
}

it('says in one sentence what to do where SQLite is not built for this Node', () => {
  const missing = new Error('Could not locate the bindings file. Tried:\n → /a\n → /b');
  const other = Object.assign(new Error('compiled against another version'), { code: 'ERR_DLOPEN_FAILED' });
  for (const error of [missing, other])
    expect(sentenceOf(error, '/s/x.db')).toBe(
      'SQLite is not built for this Node: run `npm rebuild better-sqlite3`, which takes a C++ compiler, make and Python 3.',
    );
});

describe('what is recorded', () => {
  it('gives back what was committed, bytes and nulls included', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    const body = Buffer.from([0, 1, 254, 255]);
    await db.commit('putCatalog', ['files', 'tools', body, 'abc', 7]);
    await db.commit('putAside', noted('r1'));
    expect(db.get<CatalogRow>('catalog', ['files', 'tools'])).toEqual({
      server: 'files',
      kind: 'tools',
      body,
      hash: 'abc',
      fetched_at: 7,
    });
    expect(db.get<RefusedRow>('refused', [1])).toMatchObject({ message_id: 'r1', bytes: 0 });
    await db.commit('deleteCatalog', ['files']);
    expect(db.all('catalogs')).toEqual([]);
  });

  it('keeps the order of writes and commits, also across batches', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    const commits: Promise<boolean>[] = [];
    for (let i = 0; i < 3_000; i++) {
      if (i % 7 === 0) commits.push(db.commit('putAside', noted(`r${i}`)));
      else db.write('putAside', noted(`r${i}`));
    }
    await Promise.all(commits);
    await db.flush();
    const order = db.all<RefusedRow>('refused', [5_000]).map((row) => row.message_id);
    expect(order.reverse()).toEqual(Array.from({ length: 1_000 }, (_, i) => `r${2_000 + i}`)); // more are not kept
  });

  it('records a single write without being asked to flush', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    db.write('setMeta', ['key', 'value']);
    await eventually(() => expect(db.get('getMeta', ['key'])).toEqual({ value: 'value' }));
  });

  it('puts a message into the outbox once and gives the oldest first', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    for (const id of ['a', 'b', 'a', 'c']) db.write('addOutbox', ['subject', id, Buffer.from(id), 1]);
    await db.flush();
    const [first, ...rest] = db.all<OutboxRow>('outbox', [10]);
    expect([first?.message_id, ...rest.map((row) => row.message_id)]).toEqual(['a', 'b', 'c']);
    await db.commit('deleteOutbox', [first!.id]);
    expect(db.get('outboxDepth')).toEqual({ depth: 2 });
  });

  it('refuses a bad statement alone, and records the rest of its batch', async () => {
    await using dir = await scratch();
    const faults: string[] = [];
    await using db = await store(dir.path, { onFault: (name) => faults.push(name) });
    const results = await Promise.allSettled([
      db.commit('setMeta', ['before', '1']),
      db.commit('setMeta', ['broken', null]),
      db.commit('setMeta', ['after', '2']),
      db.write('setMeta', [null, 'broken']),
      db.flush(),
    ]);
    expect(results.map((result) => result.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
    expect(results[1]).toMatchObject({ reason: { message: expect.stringMatching(/setMeta.*NOT NULL/) } });
    expect(db.get('getMeta', ['after'])).toEqual({ value: '2' });
    expect([faults, db.dropped, db.health.state]).toEqual([['setMeta'], 1, 'ready']);
  });

  it('tells the caller at once when the values do not fit the statement', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    expect(() => db.write('setMeta', ['key'])).toThrow('The statement setMeta takes 2 values, not 1.');
    expect(() => db.write('setMeta', ['key', {} as never])).toThrow('cannot take a value of type object');
    await expect(db.commit('setMeta', [])).rejects.toThrow('takes 2 values');
  });

  it('takes a whole catalog in one statement, and refuses what would break the writer', async () => {
    await using dir = await scratch();
    await using db = await store(dir.path);
    await db.commit('setMeta', ['large', 'ü€'.repeat(16_000_000)]);
    await expect(db.commit('setMeta', ['larger', 'x'.repeat(33_600_000)])).rejects.toMatchObject({ code: 'tooLarge' });
    expect(db.get<{ value: string }>('getMeta', ['large'])?.value).toHaveLength(32_000_000);
  });
});

describe('opening and closing', () => {
  it('makes the schema from nothing, opens it again unchanged, and keeps what was there', async () => {
    await using dir = await scratch();
    const first = await openStore(dir.path);
    await first.commit('setMeta', ['kept', 'yes']);
    await first.close();
    const schema = () => {
      const raw = new Sqlite(join(dir.path, 'troupe.db'), { readonly: true });
      const found = [raw.pragma('user_version', { simple: true }), raw.prepare('SELECT * FROM sqlite_schema').all()];
      raw.close();
      return found;
    };
    const before = schema();
    await using again = await store(dir.path);
    expect(again.get('getMeta', ['kept'])).toEqual({ value: 'yes' });
    expect(schema()).toEqual(before);
    expect(before[0]).toBe(SCHEMA_VERSION);
  });

  it('asks for the full fsync on every connection, also on a database that was there', async () => {
    await using dir = await scratch();
    await (await openStore(dir.path)).close();
    for (const readonly of [false, true]) {
      const raw = openDatabase(join(dir.path, 'troupe.db'), { readonly });
      const pragmas = ['journal_mode', 'synchronous', 'foreign_keys'].map((name) => raw.pragma(name, { simple: true }));
      raw.close();
      expect(pragmas).toEqual(['wal', 2, 1]);
    }
  });

  it('keeps its files to itself whatever the umask', async () => {
    await using dir = await scratch();
    const path = join(dir.path, 'state');
    const umask = process.umask(0);
    try {
      mkdirSync(path, 0o777);
      await using db = await store(path);
      await db.commit('setMeta', ['key', 'value']);
      const modes = ['', 'troupe.db', 'troupe.db-wal', 'troupe.db-shm', 'ballast'].map((name) =>
        (statSync(join(path, name)).mode & 0o777).toString(8),
      );
      expect(modes).toEqual(['700', '600', '600', '600', '600']);
    } finally {
      process.umask(umask);
    }
  });

  it('empties the WAL and says so when it is used after closing', async () => {
    await using dir = await scratch();
    const db = await openStore(dir.path);
    const states: string[] = [];
    db.onHealth((health) => states.push(health.state));
    db.write('setMeta', ['last', 'word']);
    await Promise.all([db.close(), db.close()]);
    expect(statSync(join(dir.path, 'troupe.db-wal'), { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    expect(states).toEqual(['closed']);
    await expect(db.commit('setMeta', ['a', 'b'])).rejects.toMatchObject({ code: 'unavailable' });
    expect(() => db.get('getMeta', ['last'])).toThrow('is closed');
    await using again = await store(dir.path);
    expect(again.get('getMeta', ['last'])).toEqual({ value: 'word' });
  });
});

describe('refusals', () => {
  const refused = async (directory: string, message: RegExp) =>
    expect(openStore(directory)).rejects.toMatchObject({
      name: 'TroupeError',
      message: expect.stringMatching(message),
    });

  it('refuses a schema from the future', async () => {
    await using dir = await scratch();
    const future = new Sqlite(join(dir.path, 'troupe.db'));
    future.pragma(`user_version = ${SCHEMA_VERSION + 6}`);
    future.close();
    await refused(dir.path, /troupe\.db was written by a newer troupe \(schema \d+, this one knows \d\): install/);
  });

  it('refuses a corrupt file and says what to do with it', async () => {
    await using dir = await scratch();
    writeFileSync(join(dir.path, 'troupe.db'), Buffer.alloc(20_000, 'not a database '));
    await refused(dir.path, /troupe\.db is corrupt: move it away/);
  });

  it('refuses a path that is a file, or lies in one', async () => {
    await using dir = await scratch();
    const file = join(dir.path, 'file');
    writeFileSync(file, '');
    await refused(file, /a file is in its place: choose another/);
    await refused(join(file, 'below'), /a file is in its place: choose another/);
  });

  it('refuses a directory that it cannot write', async () => {
    await using dir = await scratch();
    chmodSync(dir.path, 0o500);
    const isRoot = process.getuid?.() === 0; // root may write anywhere, so it becomes nobody for a moment
    if (isRoot) process.seteuid?.(65_534);
    try {
      await refused(dir.path, /cannot be written: make it yours, or choose another/);
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(dir.path, 0o700);
    }
  });

  it('knows the filesystems that machines share, and the SQLite versions that lose data', () => {
    expect([0x6969, 0xff534d42, -11317950, 0x01021997, 0x65735546].map(networkFilesystem)).toEqual([
      'NFS',
      'CIFS',
      'CIFS',
      '9p',
      'FUSE',
    ]);
    expect([0xef53, 0x01021994, 0x9123683e].map(networkFilesystem)).toEqual([undefined, undefined, undefined]);
    const versions = [
      [3, 51, 2],
      [3, 51, 3],
      [3, 53, 0],
      [2, 99, 9],
      [4, 0, 0],
    ];
    expect(versions.map((version) => isOlder(version, [3, 51, 3]))).toEqual([true, false, false, true, false]);
  });
});
