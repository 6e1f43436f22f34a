// Whose roots count: those of hosts that are there, though sessions of hosts that left without a word are kept for a day.

import { expect, test } from 'vitest';
import { createRootRows } from '../../src/roots/roots.ts';
import { openStore } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { scratch } from '../support/scratch.ts';

const MINUTE_MS = 60_000;

test('a session that nobody has used for some minutes offers nothing, until it is used again', async () => {
  await using dir = await scratch();
  const store = await openStore(dir.path);
  try {
    const rows = createRootRows(store, realWorld, (error) => expect.unreachable(String(error)));
    const offered = () => {
      rows.forget();
      return rows.get().sessions.map(({ id }) => id);
    };
    const usedAt = { there: Date.now() - 4 * MINUTE_MS, gone: Date.now() - 6 * MINUTE_MS };
    for (const [id, at] of Object.entries(usedAt)) {
      await store.commit('addSession', [id, '_', 'http', '', '2025-11-25', '{}', '{}', at, at, '_', 100]);
      await store.commit('setSessionRoots', ['[{"uri":"file:///x"}]', id]);
    }
    expect(offered()).toEqual(['there']);
    await store.commit('touchSession', [Date.now(), 'gone']);
    expect(offered().sort()).toEqual(['gone', 'there']);
  } finally {
    await store.close();
  }
});

test('what a row holds that is no list of roots offers nothing, and keeps no other from offering', async () => {
  await using dir = await scratch();
  const store = await openStore(dir.path);
  try {
    const written = ['{"a":', '[1,{},{"uri":7}]', '"text"', '', '[{"uri":"file:///x"}]'];
    for (const [id, roots] of written.entries()) {
      const at = Date.now();
      await store.commit('addSession', [String(id), '_', 'http', '', '2025-11-25', '{}', '{}', at, at, '_', 100]);
      await store.commit('setSessionRoots', [roots, String(id)]);
    }
    const rows = createRootRows(store, realWorld, (error) => expect.unreachable(String(error)));
    expect(rows.get().sessions.flatMap(({ roots }) => roots)).toEqual([{ uri: 'file:///x' }]);
  } finally {
    await store.close();
  }
});
