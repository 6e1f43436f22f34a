// Parts that need a thread or a file, in a process in which the kernel refuses it: each says so, and does its work when it can.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { ROOT } from '../support/daemon.ts';
import { faults, hasFaults } from '../support/faults.ts';
import { scratch } from '../support/scratch.ts';

it.runIf(hasFaults)('a refused thread, rename or sync costs what needed it, and no more', async () => {
  await using dir = await scratch();
  using order = faults(dir.path);
  await mkdir(join(dir.path, 'work'));
  await mkdir(join(dir.path, 'work/store'), { mode: 0o700 });
  const child = execa(process.execPath, [join(ROOT, 'test/support/faults-child.mjs'), join(dir.path, 'work')], {
    env: order.env,
    stdout: 'pipe',
    reject: false,
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const does = async (what: string): Promise<string> => {
    child.stdin.write(`${what}\n`);
    return (await lines.next()).value;
  };
  expect(await does('replace')).toBe('well ');
  for (const errno of ['EAGAIN', 'ENOMEM'] as const) {
    order.set('thread', { errno });
    expect(await does('check')).toMatch(/^refused The thread that checks answers broke: E/);
    expect(await does('store')).toMatch(
      /^refused The database thread cannot be started: the machine allows no further/,
    );
    order.clear();
  }
  expect(await does('check')).toBe('well ');
  expect(await does('store')).toBe('well ');
  await writeFile(join(dir.path, 'work/file'), 'old');
  for (const [syscall, errno] of [
    ['rename', 'EIO'],
    ['rename', 'EROFS'],
    ['fsync', 'ENOSPC'],
    ['open', 'EMFILE'],
  ] as const) {
    order.set(syscall, { errno, times: 1 });
    expect(await does('replace')).toMatch(new RegExp(`^refused ${errno}`));
    order.clear();
    expect(await does('show')).toBe('well old 0'); // as it was, and nothing beside it
  }
  await writeFile(join(dir.path, 'work/troupe.log'), Buffer.alloc(17 * 2 ** 20));
  order.set('rename', { errno: 'EACCES' });
  expect(await does('log')).toBe('well '); // the old file is written to for longer
  child.stdin.end();
  expect((await child).exitCode).toBe(0);
});
