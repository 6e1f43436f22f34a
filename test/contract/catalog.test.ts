// What is remembered of servers' lists from one start to the next, and what is not.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { openStore } from '../../src/store/store.ts';
import { scratch } from '../support/scratch.ts';

const entry = (name: string) => ({ name, bytes: Buffer.from(JSON.stringify({ name })) });

test('a server’s lists are there after a restart, those of instances are not, for nobody would ever forget them', async () => {
  await using dir = await scratch();
  const store = await openStore(join(dir.path, 'database'));
  await using _ = { [Symbol.asyncDispose]: store.close };
  const catalog = createCatalog(store);
  for (const name of ['files', 'files@alice', 'files@session-0123456789ab'])
    expect(catalog.set(name, 'tools', [entry('read')])).toBe(true);
  expect(catalog.get('files@alice', 'tools')).toMatchObject({ isFresh: true, entries: [{ name: 'read' }] });
  await store.commit('deleteCatalog', ['nobody']); // what was written before it is on the disk with it
  const rows = store.all<{ server: string }>('catalogs');
  expect(rows.map(({ server }) => server)).toEqual(['files']);
  expect(createCatalog(store).get('files', 'tools')).toMatchObject({ isFresh: false, entries: [{ name: 'read' }] });
});
