// The store on a disk that fails it: full, damaged, and well again. The full disk is a file that may not grow,
// and, where the test may mount one, a real filesystem of three megabytes.

import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { execa, execaSync } from 'execa';
import { describe, expect, it } from 'vitest';
import { ballastIn } from '../../src/store/ballast.ts';
import { openStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { noted } from '../support/noted.ts';
import { scratch } from '../support/scratch.ts';

type Disk = AsyncDisposable & {
  path: string;
  options: StoreOptions;
  fill(store: Store): Promise<void>;
  free(): void;
};

const fat = 'x'.repeat(3_000);
const large = (id: string) => noted(id, fat);
const kept = (store: Store, like: string) =>
  store.all<{ message_id: string }>('refused', [1_000]).filter((row) => row.message_id.startsWith(like)).length;

async function opened(directory: string, options?: StoreOptions) {
  const store = await openStore(directory, options);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

async function fileThatMayNotGrow(): Promise<Disk> {
  const dir = await scratch();
  return Object.assign(dir, {
    options: { maxPages: 104, ballastBytes: 65_536 },
    async fill(store: Store) {
      for (let i = 0; i < 30; i++) await store.commit('putAside', large(`old${i}`));
    },
    free() {
      const other = new Sqlite(join(dir.path, 'troupe.db'), { timeout: 5_000 });
      other.exec(`DELETE FROM refused WHERE message_id LIKE 'old%'`);
      other.close();
    },
  });
}

async function smallFilesystem(): Promise<Disk> {
  const dir = await scratch();
  await execa('mount', ['-t', 'tmpfs', '-o', 'size=3m,mode=700', 'troupe-test', dir.path]);
  const filler = join(dir.path, 'filler');
  return {
    path: dir.path,
    options: { ballastBytes: 65_536 },
    fill: async () => fillUp(filler),
    free: () => rmSync(filler),
    async [Symbol.asyncDispose]() {
      await execa('umount', [dir.path]);
      await dir[Symbol.asyncDispose]();
    },
  };
}

function fillUp(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4_096, 1));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  } finally {
    closeSync(descriptor);
  }
}

const mayMount = (() => {
  const script = 'd=$(mktemp -d) && mount -t tmpfs -o size=3m t "$d" && umount "$d"; code=$?; rmdir "$d"; exit $code';
  return execaSync('sh', ['-c', script], { reject: false }).exitCode === 0;
})();
const disks = [{ name: 'a file that may not grow', make: fileThatMayNotGrow }];
if (mayMount) disks.push({ name: 'a filesystem of three megabytes', make: smallFilesystem });

describe.each(disks)('a full disk: $name', ({ make }) => {
  it('is a state: commits are told no, writes wait, and all goes on by itself when there is room', async () => {
    await using disk = await make();
    await using store = await opened(disk.path, disk.options);
    await disk.fill(store);
    for (let i = 0; i < 40; i++) store.write('putAside', large(`new${i}`));
    await eventually(() => expect(store.health.state).toBe('full'));
    expect(store.health.message).toMatch(new RegExp(`${disk.path}.*free .*space`));
    await expect(store.commit('setMeta', ['told no', '1'])).rejects.toMatchObject({ code: 'unavailable' });
    expect(existsSync(join(disk.path, 'ballast'))).toBe(false);
    expect(store.get('countRefused')).toBeDefined();

    disk.free();
    await eventually(() => expect(store.health.state).toBe('ready'));
    await store.commit('setMeta', ['told yes', '2']);
    expect([kept(store, 'new'), store.get('getMeta', ['told no']), store.dropped]).toEqual([40, undefined, 0]);
    expect(statSync(join(disk.path, 'ballast')).size).toBe(65_536);
  }, 20_000);

  it('drops and counts what is beyond the bound of the queue, and closes in time', async () => {
    await using disk = await make();
    await using store = await opened(disk.path, { ...disk.options, queueOps: 60 });
    await disk.fill(store);
    for (let i = 0; i < 50; i++) store.write('putAside', large(`new${i}`));
    await eventually(() => expect(store.health.state).toBe('full'));
    for (let i = 0; i < 50; i++) store.write('putAside', large(`more${i}`));
    expect(store.dropped).toBe(40);
    await expect(store.commit('setMeta', ['a', 'b'])).rejects.toMatchObject({ code: 'unavailable' });
    await store.close();
    expect([store.dropped, store.health.state]).toEqual([100, 'closed']);
  }, 20_000);
});

describe('the reserve', () => {
  it('takes its space only where there is plenty, and gives it back once', async () => {
    await using dir = await scratch();
    const ballast = ballastIn(dir.path, 100_000);
    expect([ballast.restore(), ballast.restore()]).toEqual([true, true]);
    expect(statSync(join(dir.path, 'ballast')).size).toBe(100_000);
    expect([ballast.release(), ballast.release()]).toEqual([true, false]);
    expect(ballastIn(dir.path, 2 ** 60).restore()).toBe(false);
    expect(existsSync(join(dir.path, 'ballast'))).toBe(false);
  });

  it('a reserve that the disk does not let go of, or has no place for, is no fault of the writer', async () => {
    await using dir = await scratch();
    mkdirSync(join(dir.path, 'ballast', 'kept'), { recursive: true });
    const stuck = ballastIn(dir.path, 100_000);
    expect([stuck.restore(), stuck.release()]).toEqual([false, false]);
    expect(ballastIn(join(dir.path, 'gone'), 100_000).restore()).toBe(false);
  });

  if (mayMount)
    it('records from the reserve while the disk is full', async () => {
      await using disk = await smallFilesystem();
      await using store = await opened(disk.path, { ballastBytes: 524_288 });
      await disk.fill(store);
      for (let i = 0; i < 40; i++) await store.commit('putAside', large(`new${i}`));
      expect(store.health).toMatchObject({ state: 'full', message: expect.stringContaining('almost full') });
      disk.free();
      await eventually(() => expect(store.health.state).toBe('ready'));
      expect(kept(store, 'new')).toBe(40);
    });
});

it('fails for good when the database turns out to be damaged, and names the remedy', async () => {
  await using dir = await scratch();
  const before = await openStore(dir.path);
  for (let i = 0; i < 100; i++) before.write('putAside', large(`old${i}`));
  await before.close();
  const file = new Sqlite(join(dir.path, 'troupe.db'));
  const root = Number(file.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'refused'").pluck().get());
  file.close();
  const descriptor = openSync(join(dir.path, 'troupe.db'), 'r+');
  writeSync(descriptor, Buffer.alloc(4_096, 0xff), 0, 4_096, (root - 1) * 4_096);
  closeSync(descriptor);

  await using store = await opened(dir.path);
  const damage = { code: 'unavailable', message: expect.stringMatching(/troupe\.db is corrupt: move it away/) };
  await expect(store.commit('putAside', large('new'))).rejects.toMatchObject(damage);
  expect(store.health.state).toBe('failed');
  await expect(store.flush()).rejects.toMatchObject(damage);
  expect(() => store.all('refused', [5])).toThrow('is corrupt');
  await store.close();
  expect(store.health.state).toBe('closed');
});
