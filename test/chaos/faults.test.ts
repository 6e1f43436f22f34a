// Each system call that can fail, with each of its errors, once: part of every test run. `npm run faults` throws dice.

import { expect, it } from 'vitest';
import { daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ERRNOS, faults, hasFaults, type Syscall } from '../support/faults.ts';
import { scratch } from '../support/scratch.ts';
import { faultRounds, type Order, UNASKED } from './faults-rounds.ts';

const orders = Object.entries(ERRNOS)
  .flatMap(([syscall, errnos]) => errnos.map((errno): Order => ({ syscall: syscall as Syscall, errno, times: 3 })))
  .filter(({ syscall }) => !UNASKED.includes(syscall));

const CAGES = [
  ['in a cgroup where there may be one', 'on'],
  ['without a cgroup', 'off'],
] as const;

it.runIf(hasFaults).each(CAGES)(
  'goes on, answers every call and is well again, whatever the kernel refuses, %s',
  async (_, TROUPE_CGROUP) => {
    const chosen = orders.filter(({ syscall }) => TROUPE_CGROUP === 'on' || syscall === 'open' || syscall === 'spawn');
    const told = await faultRounds(chosen, { env: { TROUPE_CGROUP } });
    expect(told.failed).toBeGreaterThan(chosen.length);
    expect(told.answered).toBeGreaterThan(told.refused);
  },
  120_000,
);

it.runIf(hasFaults).each(CAGES)(
  'a server that ends while no descriptor is left waits for one, %s, and that counts as nothing',
  async (_, TROUPE_CGROUP) => {
    await using dir = await scratch();
    using order = faults(dir.path);
    await using d = await daemon({ servers: { echo: fixture('escapes') }, env: { ...order.env, TROUPE_CGROUP } });
    const { data } = await d.request('troupe.call.echo.escape');
    const escaped: number = data.structuredContent.value;
    const { pid } = await d.server('echo');
    order.set('open', { errno: 'EMFILE' });
    process.kill(pid as number, 'SIGKILL');
    await eventually(async () => {
      expect(await d.server('echo')).toMatchObject({ state: 'waiting', trouble: expect.stringContaining('EMFILE') });
      expect(order.failed('open')).toBeGreaterThan(20); // it was tried again, more often than a server may crash
    }, 30_000);
    expect(await d.server('echo')).toMatchObject({ restarts: 1 });
    order.clear();
    await eventually(async () => expect((await d.server('echo')).state).toBe('ready'), 10_000);
    await eventually(async () => expect(await isAlive(escaped)).toBe(false));
    expect(await d.log()).not.toMatch(/a bug in troupe|"level":60/);
  },
  60_000,
);

it.runIf(hasFaults)(
  'a start in which the disk refuses to rename a file works, or ends with a sentence before it says that it runs',
  async () => {
    await using dir = await scratch();
    using order = faults(dir.path);
    await using d = await daemon({ servers: {}, env: order.env });
    const ends: number[] = [];
    expect(await d.down()).toBe(0);
    for (let skip = 0, refused = 1; refused > 0; skip++) {
      order.set('rename', { errno: 'EROFS', skip, times: 1 });
      const { exitCode, stdout, stderr } = await d.cli('up', '--detach');
      refused = order.failed('rename');
      order.clear();
      ends.push(exitCode ?? -1);
      if (exitCode === 0) expect((await d.status()).daemon.state).toBe('running');
      else expect(stdout + stderr).toMatch(/^troupe: \S.*EROFS/);
      expect(await d.log()).not.toMatch(/a bug in troupe/);
      if (exitCode === 0) await d.cli('down');
    }
    expect(ends.length).toBeGreaterThan(2); // the note and the socket at least were refused, each once
    expect(ends.at(-1)).toBe(0);
  },
  120_000,
);
