// P5, for processes that want to get away: one that leaves its group and its session, drops its environment and has no parent
// any more ends with its server all the same, whether the kernel lets us keep it in a cgroup or not.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const SERVERS = {
  escapes: fixture('escapes', { stdinMs: 100, termMs: 100 }),
  other: fixture('escapes', { stdinMs: 100, termMs: 100 }),
};

// Elsewhere no process can be found that has left its group and dropped its environment: docs/ARCHITECTURE.md says so.
describe.runIf(process.platform === 'linux').each([
  ['in a cgroup where there may be one', {}],
  ['without a cgroup', { TROUPE_CGROUP: 'off' }],
])('P5 no orphans: a process that got away from its server, %s', (_, env) => {
  let d: Daemon;
  beforeAll(async () => {
    d = await daemon({ servers: SERVERS, env });
  }, 60_000);
  afterAll(() => d[Symbol.asyncDispose]());

  const getAway = async (server: string): Promise<number> => {
    const { data } = await d.request(`troupe.call.${server}.escape`);
    return data.structuredContent.value;
  };
  const isGone = (pid: number) => eventually(async () => expect(await isAlive(pid)).toBe(false));

  test('P5 no orphans: ends with its server, and nobody else does', async () => {
    const [gone, left] = [await getAway('escapes'), await getAway('other')];
    expect((await d.cli('restart', 'escapes')).exitCode).toBe(0);
    await isGone(gone);
    expect(await isAlive(left)).toBe(true);
  });

  test('P5 no orphans: ends with the next daemon after kill -9, and with down', async () => {
    const left = await getAway('escapes');
    await d.kill();
    expect(await isAlive(left)).toBe(true);
    await d.start();
    await isGone(left);
    const another = await getAway('escapes');
    expect(await d.down()).toBe(0);
    await isGone(another);
  });

  test('P5 no orphans: a daemon that has gone leaves no cgroup', () => {
    expect(cagesBelow('/sys/fs/cgroup').filter((path) => path.includes(String(d.pid)))).toEqual([]);
  });
});

function cagesBelow(folder: string, depth = 4): string[] {
  if (depth === 0) return [];
  try {
    const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return folders.flatMap(({ name }) =>
      name.startsWith('troupe-') ? [join(folder, name)] : cagesBelow(join(folder, name), depth - 1),
    );
  } catch {
    return []; // not ours to look into
  }
}
