// A wall clock that jumps by an hour or a year, forward and back, while a task runs and while one is kept: nothing ends or
// vanishes early, because tasks live by a clock that only runs.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import { type Beside, beside } from '../support/beside.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';
import { executions, taskLine } from '../support/task-line.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;
const MONTH = { ttlMs: 30 * DAY_MS };
/** Not so long that a jump of an hour would leave it alone. */
const MINUTES = { ttlMs: HOUR_MS / 2 };

let dir: Scratch;
let d: Daemon;
let b: Beside;
let clock: string;
let tallies: string;
let signal: string;
const made: Record<'running' | 'runningForLong' | 'kept' | 'keptForLong', TaskView> = {} as never;

beforeAll(async () => {
  dir = await scratch();
  [clock, tallies, signal] = [join(dir.path, 'clock'), join(dir.path, 'tallies'), join(dir.path, 'go')];
  const server = fixture('until');
  server.args.push(tallies);
  // Its servers and nats-server do not inherit the option, nor the clock.
  const env = { TROUPE_TEST_CLOCK: clock, NODE_OPTIONS: `--import ${join(ROOT, 'test/support/shifted-clock.mjs')}` };
  d = await daemon({ servers: { patient: server }, env });
  b = await beside(d, 'b');
  await using line = await taskLine(join(d.state, 'control.sock'));
  made.running = await line.create('patient', 'until', { id: 'running', file: signal }, MINUTES);
  made.runningForLong = await line.create('patient', 'until', { id: 'month', file: signal }, MONTH);
  made.kept = await line.create('patient', 'tally', { id: 'kept' }, MINUTES);
  made.keptForLong = await line.create('patient', 'tally', { id: 'kept for long' }, MONTH);
  expect(await line.result(made.kept.taskId)).toBe('kept');
  expect(await line.result(made.keptForLong.taskId)).toBe('kept for long');
}, 90_000);
afterAll(async () => {
  await b[Symbol.asyncDispose]();
  await d[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

/** Resolves when the daemon believes it. */
async function setClock(offset: number): Promise<void> {
  writeFileSync(`${clock}.new`, String(offset));
  renameSync(`${clock}.new`, clock);
  await using line = await taskLine(join(d.state, 'control.sock'));
  await eventually(async () => {
    const { createdAt } = await line.create('patient', 'tally', { id: 'the time' });
    expect(Math.abs(Date.parse(createdAt) - Date.now() - offset)).toBeLessThan(HOUR_MS / 4);
  });
}

/** One that lives for an instant is deleted when expired ones were looked for after the jump. */
async function expiryHasRun(): Promise<void> {
  await using line = await taskLine(join(d.state, 'control.sock'));
  const { taskId } = await line.create('patient', 'tally', { id: 'instant' }, { ttlMs: 1_000 });
  await eventually(() => expect(rowOf(taskId)).toBeUndefined(), 60_000);
  await expect(line.get(taskId)).rejects.toMatchObject({ code: 'unknownName' });
}

async function everythingIsThere(): Promise<void> {
  for (const socket of [join(d.state, 'control.sock'), b.socket]) {
    await using line = await taskLine(socket);
    for (const task of [made.running, made.runningForLong])
      expect(await line.get(task.taskId)).toMatchObject({ status: 'working', phase: 'dispatching', attempt: 1 });
    expect(await line.result(made.kept.taskId)).toBe('kept');
    expect(await line.result(made.keptForLong.taskId)).toBe('kept for long');
  }
  for (const id of ['running', 'month', 'kept', 'kept for long']) expect(executions(tallies, id)).toBe(1);
}

test('a ttl of thirty days is accepted and shown', async () => {
  await using line = await taskLine(join(d.state, 'control.sock'));
  for (const task of [made.runningForLong, made.keptForLong])
    expect([task.ttl, (await line.get(task.taskId)).ttl]).toEqual([30 * DAY_MS, 30 * DAY_MS]);
});

test.each([
  ['an hour forward', HOUR_MS],
  ['a year forward', YEAR_MS],
  ['a year back', -YEAR_MS],
  ['an hour back', -HOUR_MS],
])('%s: what runs goes on, what is kept stays', async (_, offset) => {
  await setClock(offset);
  await expiryHasRun();
  await everythingIsThere();
});

test('also when the daemon is killed and comes back in another year', async () => {
  await using line = await taskLine(b.socket);
  const { taskId } = await line.create('patient', 'tally', { id: 'before' }, MINUTES);
  await line.result(taskId);
  await setClock(2 * YEAR_MS);
  await b.kill();
  await b.start();
  await expiryHasRun();
  await everythingIsThere();
  await using after = await taskLine(b.socket);
  expect(await after.result(taskId)).toBe('before');
});

test('and when it is let, what ran ends as it should', async () => {
  writeFileSync(signal, '');
  await using line = await taskLine(b.socket);
  expect(await line.result(made.running.taskId)).toBe('running');
  expect(await line.result(made.runningForLong.taskId)).toBe('month');
});

function rowOf(task: string): unknown {
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  try {
    return db.prepare('SELECT seq FROM tasks WHERE id = ?').get(task);
  } finally {
    db.close();
  }
}
