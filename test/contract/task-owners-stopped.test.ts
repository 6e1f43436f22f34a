// A real process that owns a task is stopped and resumed: meanwhile it is taken for dead, and what it says afterwards changes
// nothing. And one that is killed, whose lock is free at once.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { openClock } from '../../src/store/clock.ts';
import { acquireLock, isHeld } from '../../src/store/lock.ts';
import { createOwners, LEASE_MS } from '../../src/tasks/owners.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';
import { stopBetweenWrites } from '../support/stopped.ts';
import { taskStore } from '../support/task-rows.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const SOON = 30_000; // for a machine that is busy: how long it really took is asked of the clock that both share

/** The other daemon: owns a task and, asked on its input, says what became of each of its words about it. */
async function owner(directory: string, task: string) {
  const child = execa('node', ['--input-type=module', '-e', OWNS, directory, task], {
    ...{ cwd: root, reject: false, buffer: false, stdin: 'pipe', stderr: 'inherit' },
  });
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  const lines = () => said.split('\n').slice(0, -1);
  await eventually(() => lines().includes('owned'), SOON);
  return {
    lines,
    signal: (name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL') => child.kill(name),
    /** Lets it say everything that an owner can say. */
    async speak(): Promise<string[]> {
      child.stdin.write('speak\n');
      await eventually(() => lines().includes('spoken'), SOON);
      return lines().filter((line) => line.startsWith('changed '));
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child;
    },
  };
}

async function here() {
  const dir = await scratch();
  const store = await taskStore(dir.path);
  const clock = await openClock(store);
  const lock = acquireLock(dir.path, 'here');
  const owners = createOwners({
    ...{ world: realWorld, store, clock, daemon: 'here', isNeeded: () => true },
    isAlive: (daemon) => isHeld(dir.path, daemon, 0),
    ...{ onOverslept() {}, onTrouble() {} },
  });
  await owners.start();
  return {
    ...{ path: dir.path, store, clock, owners },
    /** The task is ours, by looking as often as a daemon does. */
    adopted: (task: string) =>
      eventually(async () => {
        await owners.adopt(['files']);
        expect(store.row(task)?.owner).toBe(owners.id);
      }, SOON),
    async [Symbol.asyncDispose]() {
      await owners.close();
      clock.close();
      lock?.release();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

it('adopts from a stopped process once its lease is over, and never hears from it again', async () => {
  await using s = await here();
  const task = randomUUID();
  await using other = await owner(s.path, task);
  await eventually(async () => {
    expect(await s.owners.adopt(['files'])).toBe(false); // it lives, so nothing is taken from it
    expect(s.store.lives()).toHaveLength(2);
  });
  await stopBetweenWrites(other.signal, join(s.path, 'troupe.db'));
  await s.adopted(task);
  const beat = s.store.lives().find(({ daemon }) => daemon === 'there')?.beat ?? 0;
  expect(s.clock.uptime() - beat).toBeGreaterThanOrEqual(LEASE_MS);
  expect(isHeld(s.path, 'there', 0), 'its lock says that it lives').toBe(true);

  const before = s.store.row(task);
  other.signal('SIGCONT');
  expect(await other.speak()).toEqual(Array(7).fill('changed false'));
  expect(s.store.row(task)).toEqual(before);
  expect(before).toMatchObject({ epoch: 2, status: 'working', phase: 'queued', attempt: 0 });
  await eventually(() => expect(other.lines()).toContain('overslept'), SOON);
}, 120_000);

it('adopts from a killed process without waiting for its lease', async () => {
  await using s = await here();
  const task = randomUUID();
  await using other = await owner(s.path, task);
  other.signal('SIGKILL');
  await s.adopted(task);
  expect(isHeld(s.path, 'there', 0)).toBe(false);
  expect(s.store.row(task)?.epoch).toBe(2);
}, 120_000);

it('leaves an owner alone that lives and speaks', async () => {
  await using s = await here();
  const task = randomUUID();
  await using other = await owner(s.path, task);
  const words = await other.speak(); // it dispatches, requeues, and so on, until it has ended the task and has nothing to release
  expect(words).toEqual([...Array(6).fill('changed true'), 'changed false']);
  expect(s.store.row(task)).toMatchObject({ epoch: 1, status: 'completed', phase: 'ended', attempt: 1 });
}, 120_000);

const OWNS = `
  import { createInterface } from 'node:readline';
  import { acquireLock } from './dist/src/store/lock.js';
  import { openClock } from './dist/src/store/clock.js';
  import { openStore } from './dist/src/store/store.js';
  import { createOwners } from './dist/src/tasks/owners.js';
  import { realWorld } from './dist/src/world/world.js';
  const [directory, task] = process.argv.slice(1);
  acquireLock(directory, 'there');
  const store = await openStore(directory);
  const owners = createOwners({
    world: realWorld, store, clock: await openClock(store), daemon: 'there', isAlive: () => true, isNeeded: () => true,
    onOverslept: () => console.log('overslept'), onTrouble: (error) => console.error(error),
  });
  await owners.start();
  const call = Buffer.from('{}');
  const row = [task, '_', 'files', 'read', 'cli', null, 'queued', 0, owners.id, null, 'print', 1, 1, 1, 1, 1e15, call, '_', 9];
  await store.commit('addTask', row);
  console.log('owned');
  const mine = [task, owners.id, 1];
  const words = [
    ['dispatchTask', []], ['requeueTask', [0, 'again', 2]], ['setTaskUpstream', ['up']],
    ['setTaskStatus', ['working', null, 2]], ['setTaskProgress', ['{}']],
    ['endTask', ['completed', null, 'result', null, call, 1, 1e15, 2, null]], ['releaseTask', ['queued', 0]],
  ];
  for await (const _ of createInterface({ input: process.stdin })) {
    for (const [word, values] of words) console.log('changed', await store.commit(word, [...values, ...mine]));
    console.log('spoken');
  }
`;
