// What a commit says of itself: whether it changed anything, however many statements share its batch. And what else the
// tables of tasks stand on: bytes that are sealed as bytes, and a database of the version before them.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { core } from '../../src/store/migrations/001-core.ts';
import { sessions } from '../../src/store/migrations/002-sessions.ts';
import { oauth } from '../../src/store/migrations/003-oauth.ts';
import { asks } from '../../src/store/migrations/004-asks.ts';
import { SCHEMA_VERSION } from '../../src/store/migrations.ts';
import { openSeal } from '../../src/store/seal.ts';
import { openStore } from '../../src/store/store.ts';
import { noted } from '../support/noted.ts';
import { scratch } from '../support/scratch.ts';
import { taskStore } from '../support/task-rows.ts';

describe('a commit', () => {
  it('says whether it changed a row, each for itself in one batch with hundreds of others', async () => {
    await using dir = await scratch();
    await using store = await taskStore(dir.path);
    const said: Promise<boolean>[] = [];
    const expected: boolean[] = [];
    const ask = (answer: boolean, committed: Promise<boolean>) => {
      expected.push(answer);
      said.push(committed);
    };
    for (let round = 0; round < 40; round++) {
      for (let i = 0; i < round; i++) store.write('putAside', noted(`w${round}.${i}`)); // runs of every length
      ask(true, store.commit('setMeta', [`key${round}`, 'v']));
      ask(false, store.commit('endSession', [1, 'nobody']));
      ask(round === 0, store.add({ id: 'only one' }));
      ask(true, store.commit('putAside', noted(`c${round}`)));
      ask(false, store.commit('deleteOutbox', [99]));
      ask(round === 0, store.commit('addOutbox', ['subject', 'the same message', Buffer.from(''), 1]));
    }
    expect(await Promise.all(said)).toEqual(expected);
    expect(store.get('countRefused')).toEqual({ count: (40 * 39) / 2 + 40 });
  });

  it('knows it of rows that are ignored, and of many of them in a row', async () => {
    await using dir = await scratch();
    await using store = await taskStore(dir.path);
    await store.commit('addSession', ['s', '_', 'http', '', '2025-11-25', '{}', '{}', 1, 1, '_', 100]);
    const subscribed = Array.from({ length: 100 }, (_, i) =>
      store.commit('addSubscription', ['s', 'files', `u${i % 60}`]),
    );
    expect(await Promise.all(subscribed)).toEqual(Array.from({ length: 100 }, (_, i) => i < 60));
  });

  it('is told apart from its neighbours when one of them is refused', async () => {
    await using dir = await scratch();
    await using store = await taskStore(dir.path);
    const outcomes = await Promise.allSettled([
      store.commit('deleteOutbox', [1]),
      ...Array.from({ length: 40 }, (_, i) => store.commit('setMeta', [`k${i}`, i === 7 ? null : 'v'])),
      store.commit('deleteOutbox', [1]),
    ]);
    const words = outcomes.map((each) => (each.status === 'fulfilled' ? each.value : 'refused'));
    expect(words).toEqual([false, ...Array.from({ length: 40 }, (_, i) => (i === 7 ? 'refused' : true)), false]);
  });
});

it('lets one that asks for it overtake all that wait, and keeps the order of the others', async () => {
  await using dir = await scratch();
  await using store = await taskStore(dir.path);
  const order: string[] = [];
  const large = 'x'.repeat(200_000); // a few fill a batch
  const waiting = Array.from({ length: 40 }, (_, i) =>
    store.commit('setMeta', ['key', `${i} ${large}`]).then(() => order.push(`${i}`)),
  );
  const first = store.commit('setMeta', ['key', 'first'], 'first').then(() => order.push('first'));
  await Promise.all([...waiting, first]);
  expect(order).toEqual(['first', ...Array.from({ length: 40 }, (_, i) => `${i}`)]);
  expect(store.get<{ value: string }>('getMeta', ['key'])?.value).toMatch(/^39 /);
});

describe('the seal', () => {
  it('gives back bytes that are no text, and text as it always did', async () => {
    await using dir = await scratch();
    const seal = openSeal(dir.path);
    const bytes = Buffer.concat([Buffer.of(0, 0xff, 0xfe, 0x80, 0xed, 0xa0, 0x80), randomBytes(100_000)]);
    const slice = bytes.subarray(3, 90_000);
    expect(seal.openBytes(seal.seal(bytes, 'row'), 'row')?.equals(bytes)).toBe(true);
    expect(seal.openBytes(seal.seal(slice, 'row'), 'row')?.equals(slice)).toBe(true);
    expect(seal.open(seal.seal('grüße', 'row'), 'row')).toBe('grüße');
    expect(seal.openBytes(seal.seal('grüße', 'row'), 'row')).toEqual(Buffer.from('grüße'));
    expect(seal.open(seal.seal(Buffer.from('grüße'), 'row'), 'row')).toBe('grüße');
  });

  it('opens nothing under another name, nor what was touched', async () => {
    await using dir = await scratch();
    const seal = openSeal(dir.path);
    const sealed = seal.seal(Buffer.from('secret'), 'task one');
    expect(sealed.includes('secret')).toBe(false);
    expect([seal.openBytes(sealed, 'task two'), seal.open(sealed, 'task two')]).toEqual([undefined, undefined]);
    for (const at of [0, 5, 20, sealed.length - 1]) {
      const touched = Buffer.from(sealed);
      touched[at] = (touched[at] ?? 0) ^ 1;
      expect(seal.openBytes(touched, 'task one')).toBe(undefined);
    }
    expect(seal.openBytes(Buffer.of(1, 2, 3), 'task one')).toBe(undefined);
  });
});

it('brings a database from before tasks to this version, and keeps what was there', async () => {
  await using dir = await scratch();
  const old = openDatabase(join(dir.path, 'troupe.db'));
  for (const sql of [core, sessions, oauth, asks]) old.exec(sql);
  old.pragma('user_version = 4');
  old.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run('kept', 'yes');
  old.close();
  const fresh = await scratch();
  await using _ = fresh;
  await (await openStore(fresh.path)).close();
  await using store = await taskStore(dir.path);
  expect(store.get('getMeta', ['kept'])).toEqual({ value: 'yes' });
  expect(await store.add({ id: 't' })).toBe(true);
  expect(schemaOf(dir.path)).toEqual(schemaOf(fresh.path));
});

function schemaOf(directory: string): unknown {
  const raw = openDatabase(join(directory, 'troupe.db'), { readonly: true });
  const version = raw.pragma('user_version', { simple: true });
  const found = raw.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name').all();
  raw.close();
  expect(version).toBe(SCHEMA_VERSION);
  return found;
}
