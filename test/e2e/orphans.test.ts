// P5: whatever a killed daemon leaves behind is ended by the next one, and nobody else is.
// The nats-server is the exception: it outlives the daemon on purpose, so that clients stay connected, and is adopted.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, isAlive, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const STUBBORN = join(ROOT, 'test/fixtures/ignores-sigterm.mjs');
// Servers that would not leave by themselves when their daemon is gone.
const QUICK = { stdinMs: 100, termMs: 100 };
const isLinux = process.platform === 'linux';

/** Starts a process that leaves its group and session, and tells its pid on stderr. */
const RUNAWAY = `
  const { spawn } = require('node:child_process');
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { detached: true, stdio: 'ignore' });
  child.unref();
  process.stderr.write('runaway ' + child.pid + '\\n');
  import(${JSON.stringify(STUBBORN)});
`;

const SERVERS = {
  direct: fixture('ignores-sigterm', QUICK),
  npx: {
    command: 'npx',
    args: ['--no-install', '@modelcontextprotocol/server-everything', 'stdio'],
    cwd: ROOT,
    'x-troupe': { openMs: '60s' },
  },
  shell: { command: 'sh', args: ['-c', `node ${STUBBORN}; true`], 'x-troupe': QUICK }, // `; true` keeps the shell from becoming node
  forks: fixture('forks', QUICK),
  runaway: { command: process.execPath, args: ['-e', RUNAWAY], 'x-troupe': QUICK },
};

describe('P5 no orphans: after kill -9 of the daemon', () => {
  let d: Daemon;
  let innocent: ChildProcess;
  let before: Record<string, number[]>;
  let brokerPid: number;

  beforeAll(async () => {
    d = await daemon({ servers: SERVERS });
    for (const name of Object.keys(SERVERS)) await d.until(name, 'ready', 60_000);
    before = await families(d);
    brokerPid = (await d.status()).bus.pid as number;
    innocent = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { detached: true, stdio: 'ignore' });
    await d.kill();
    expect(await living([brokerPid])).toEqual([brokerPid]);
    accuse(d, innocent.pid as number);
    await d.start();
    for (const name of Object.keys(SERVERS)) await d.until(name, 'ready', 60_000);
  }, 120_000);
  afterAll(async () => {
    innocent.kill('SIGKILL');
    await d[Symbol.asyncDispose]();
  });

  test.each([
    ['direct', 1],
    ['npx', 2],
    ['shell', 2],
    ['forks', 2],
    ['runaway', 2],
  ] as const)('P5 no orphans: of the server launched by %s none of its processes lives', async (name, least) => {
    const pids = before[name] ?? [];
    expect(pids.length).toBeGreaterThanOrEqual(least);
    // Without /proc nobody can find who left the group.
    const findable = name === 'runaway' && !isLinux ? pids.slice(0, 1) : pids;
    await eventually(async () => expect(await living(findable)).toEqual([]));
    for (const pid of pids) if (!findable.includes(pid)) process.kill(pid, 'SIGKILL');
  });

  test('P5 no orphans: each server has a new process, which answers', async () => {
    for (const name of Object.keys(SERVERS)) {
      expect(before[name]).not.toContain((await d.server(name)).pid);
      const reply = await d.request(`troupe.call.${name}.echo`, { message: name });
      expect(reply.data.content[0].text).toContain(name);
    }
  });

  test('P5 no orphans: a process that merely has the pid of an old one is left alone', async () => {
    expect(await living([innocent.pid as number])).toEqual([innocent.pid]);
  });

  test('P5 no orphans: the log says what was ended', async () => {
    await eventually(async () => expect(await d.log()).toContain('an earlier daemon had left behind'));
    const line = (await d.log()).split('\n').find((each) => each.includes('had left behind')) ?? '';
    expect(JSON.parse(line).swept).toEqual(expect.arrayContaining(['direct', 'npx', 'shell', 'forks', 'runaway']));
    expect(JSON.parse(line).swept).not.toContain('accused');
  });

  test('P5 no orphans: the nats-server is adopted, and ends with the daemon that adopted it', async () => {
    expect((await d.status()).bus).toMatchObject({ state: 'online', pid: brokerPid });
    const { runaway = [], ...others } = await families(d);
    const findable = isLinux ? runaway : runaway.slice(0, 1);
    const now = [...Object.values(others).flat(), ...findable, brokerPid, (await d.status()).daemon.pid];
    expect(await d.down()).toBe(0);
    await eventually(async () => expect(await living(now)).toEqual([]));
    for (const pid of runaway) if (!findable.includes(pid)) process.kill(pid, 'SIGKILL');
    expect(rowsOf(d)).toEqual([]);
  });
});

test('P5 no orphans: stop ends a grandchild that ignores SIGTERM, with the server and on down', async () => {
  await using d = await daemon({ servers: { forks: SERVERS.forks } });
  const grandchild = async () => (await d.request('troupe.call.forks.grandchild')).data.structuredContent.value;
  const first = await grandchild();
  expect((await d.cli('restart', 'forks')).exitCode).toBe(0);
  await eventually(async () => expect(await living([first])).toEqual([]));
  const second = await grandchild();
  expect(await d.down()).toBe(0);
  await eventually(async () => expect(await living([second])).toEqual([]));
});

/** Every process of each server: all of its group, and the runaway, whom its server names. */
async function families(d: Daemon): Promise<Record<string, number[]>> {
  const { stdout } = await execa('ps', ['-A', '-o', 'pid=,pgid=']);
  const table = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const { servers } = await d.status();
  const groups = servers.map(({ name, pid }) => {
    const members = table.filter(([, group]) => group === pid).map(([member]) => member as number);
    return [name, members] as const;
  });
  const found = Object.fromEntries(groups);
  const told = await eventually(async () => {
    const all = [...(await d.log()).matchAll(/runaway (\d+)/g)];
    if (all.length === 0) throw new Error('the runaway is not in the log yet');
    return all.map(([, pid]) => Number(pid));
  });
  return { ...found, runaway: [...(found.runaway ?? []), ...told.slice(-1)] };
}

async function living(pids: readonly number[]): Promise<number[]> {
  const alive = await Promise.all(pids.map(isAlive));
  return pids.filter((_, index) => alive[index]);
}

/** A row as an earlier daemon would have left it, had the pid been given to another process since. */
function accuse(d: Daemon, pid: number): void {
  const db = new Sqlite(join(d.state, 'database/troupe.db'));
  const [known] = db.prepare("SELECT * FROM processes WHERE name = 'direct'").all() as { boot_id: string }[];
  db.prepare('INSERT INTO processes VALUES (?, ?, ?, ?, ?, ?, ?)').run(
    ...['server', 'accused', pid, '1', known?.boot_id, 'x', Date.now()],
  );
  db.close();
}

function rowsOf(d: Daemon): unknown[] {
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  const rows = db.prepare('SELECT name FROM processes').all();
  db.close();
  return rows;
}
