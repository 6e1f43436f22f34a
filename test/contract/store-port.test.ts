// The promises of the store's port, by each store that stands behind it: SQLite on the disk, and one in memory whose time a test
// can drive. Then an adapter that needs nothing but the port and a world: the outbox, through a crash, in virtual time.

import { describe, expect, it } from 'vitest';
import { outbox, type Publisher } from '../../src/bus/outbox.ts';
import { openStore, type RefusedRow, type Store } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { memoryStore } from '../support/memory-store.ts';
import { noted } from '../support/noted.ts';
import { scratch } from '../support/scratch.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const recorded = (store: Store) =>
  store
    .all<RefusedRow>('refused', [100])
    .map((row) => row.message_id)
    .reverse();

const STORES: Record<string, (directory: string) => Promise<Store>> = {
  'on the disk': (directory) => openStore(directory, { ballastBytes: 0 }),
  'in memory': async () => memoryStore(realWorld),
};

describe.each(Object.entries(STORES))('a store %s', (_, open) => {
  async function opened() {
    const dir = await scratch();
    const store = await open(dir.path);
    return {
      store,
      async [Symbol.asyncDispose]() {
        await store.close();
        await dir[Symbol.asyncDispose]();
      },
    };
  }

  it('shows to every read what a commit has resolved, and says whether it changed a row', async () => {
    await using at = await opened();
    expect(await at.store.commit('setClock', ['one', ''])).toBe(true);
    expect(at.store.get('getMeta', ['clock'])).toEqual({ value: 'one' });
    const [first, second] = [
      at.store.commit('setClock', ['two', 'one']),
      at.store.commit('setClock', ['three', 'one']),
    ];
    expect(await Promise.all([first, second])).toEqual([true, false]);
    expect(at.store.get('getMeta', ['clock'])).toEqual({ value: 'two' });
  });

  it('keeps the order of writes and commits, but for what goes first', async () => {
    await using at = await opened();
    at.store.write('putAside', noted('a'));
    const commits = [at.store.commit('putAside', noted('b')), at.store.commit('putAside', noted('c'), 'first')];
    at.store.write('putAside', noted('d'));
    await Promise.all(commits);
    await at.store.flush();
    expect(recorded(at.store)).toEqual(['c', 'a', 'b', 'd']);
  });

  it('lets one refused statement undo no other', async () => {
    await using at = await opened();
    const before = at.store.commit('putAside', noted('before'));
    const bad = at.store.commit('addUsage', ['files', null, 1]);
    const after = at.store.commit('putAside', noted('after'));
    await expect(bad).rejects.toMatchObject({ code: 'internal' });
    expect(await Promise.all([before, after])).toEqual([true, true]);
    expect(recorded(at.store)).toEqual(['before', 'after']);
  });

  it('rejects what comes after its end', async () => {
    await using at = await opened();
    await at.store.close();
    await expect(at.store.commit('putAside', noted('late'))).rejects.toMatchObject({ code: 'unavailable' });
    expect(at.store.health.state).toBe('closed');
  });
});

describe('in virtual time', () => {
  function listener(): Publisher & { readonly heard: string[] } {
    const heard: string[] = [];
    return { heard, publish: (_, payload) => void heard.push(String(payload)), flush: async () => {} };
  }

  it('a write is recorded within the linger, and lost by a crash before it', async () => {
    const world = simulatedWorld();
    const store = memoryStore(world);
    store.write('putAside', noted('lost'));
    await world.pass(99);
    store.crash();
    store.write('putAside', noted('recorded'));
    await world.pass(100);
    expect(recorded(store)).toEqual(['recorded']);
  });

  it('an event of a daemon that died is sent by the daemon beside it, after five seconds', async () => {
    const world = simulatedWorld();
    const store = memoryStore(world);
    const [beside, dead] = [outbox(store, 10, world), outbox(store, 10, world)];
    const bus = listener();
    beside.online(bus);
    await world.pass(0);
    await dead.add('ev.a', Buffer.from('its last word'));
    store.crash();
    await world.pass(4_999);
    expect(bus.heard).toEqual([]);
    await world.pass(1);
    expect(bus.heard).toEqual(['its last word']);
    await beside.idle();
    expect(store.get('outboxDepth')).toEqual({ depth: 0 });
  });
});
