// One state directory by two names: daemons and verbs meet there all the same, and nobody's servers are taken for the
// orphans of somebody else.

import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { daemon, fixture, isAlive, MAIN } from '../support/daemon.ts';

test('a second daemon that comes through a link leaves the first one’s servers alone', async () => {
  await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { http: { address: '127.0.0.1:0' } } });
  const { pid } = await d.until('echo', 'ready');
  await symlink(d.dir, join(d.dir, 'link'));
  const env = { ...d.env, TROUPE_STATE: `${d.dir}/link/state/` };
  const cli = (...words: string[]) =>
    execa(process.execPath, [MAIN, ...words], { env, extendEnv: false, reject: false, timeout: 60_000 });
  await using _ = { [Symbol.asyncDispose]: async () => void (await cli('down', '--instance', 'b')) };

  expect(JSON.parse((await cli('status', '--json')).stdout).daemon.pid).toBe(d.pid);
  expect((await cli('up', '--json')).stdout).toContain('"started":false');
  expect((await cli('up', '--detach', '--instance', 'b')).exitCode).toBe(0);
  expect(await d.server('echo')).toMatchObject({ pid, restarts: 0 });
  expect(await isAlive(pid as number)).toBe(true);
  const other = JSON.parse((await d.cli('status', '--json', '--instance', 'b')).stdout);
  expect(other.bus.pid).toBe((await d.status()).bus.pid);
  expect((await cli('down', '--instance', 'b')).exitCode).toBe(0);
  expect(await d.server('echo')).toMatchObject({ pid, restarts: 0 });
}, 60_000);
