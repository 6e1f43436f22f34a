// Eight daemons that write tasks to one database at the same time, as fast as they can: whoever wants a task is never told
// that somebody else writes. How late their event loops are is measured, and reported.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Beside, beside } from '../support/beside.ts';
import { daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { noted, type TaskLine, taskLine } from '../support/task-line.ts';
import { checkRemains } from './remains.ts';

const DAEMONS = 8;
/** Callers of each daemon. */
const CALLERS = 4;

export type Written = { readonly tasks: number; readonly perSecond: number; readonly lag: Lag[] };
type Lag = { readonly p50: number; readonly p99: number; readonly max: number };

export async function writers(ms: number): Promise<Written> {
  await using d = await daemon();
  const [tallies, lags] = [join(d.dir, 'tallies'), join(d.dir, 'lag')];
  mkdirSync(lags);
  const server = fixture('tallies');
  server.args.push(tallies);
  await d.write({ busy: server });
  await d.until('busy', 'ready');
  const env = { TROUPE_TEST_LAG: lags, NODE_OPTIONS: `--import ${join(ROOT, 'test/support/loop-lag.mjs')}` };
  const names = Array.from({ length: DAEMONS }, (_, index) => `w${index}`);
  await using all = disposable(await Promise.all(names.map((name) => beside(d, name, { env }))));
  expect(await d.down()).toBe(0);

  writeFileSync(join(lags, 'go'), '');
  const wrong: string[] = [];
  const started = performance.now();
  const isOver = () => performance.now() - started > ms;
  const made = await Promise.all(all.each.map((each) => keepMaking(each, isOver, wrong)));
  const seconds = (performance.now() - started) / 1_000;
  expect(wrong).toEqual([]);
  const tasks = made.reduce((sum, each) => sum + each, 0);
  const executed = noted(tallies);
  expect([executed.length, new Set(executed).size]).toEqual([tasks, tasks]);
  // On a slow disk one may still be waiting for another when the last task is done.
  for (const each of all.each)
    await eventually(async () => expect((await each.status()).store.state).toBe('ready'), 15_000);
  const lag = await eventually(() =>
    all.each.map(({ pid }) => JSON.parse(readFileSync(join(lags, `${pid}.json`), 'utf8')) as Lag),
  );
  expect((await d.cli('down', '--all')).exitCode).toBe(0);
  await checkRemains(d);
  return { tasks, perSecond: Math.round(tasks / seconds), lag };
}

export const written = ({ tasks, perSecond, lag }: Written): string =>
  `writers: ${DAEMONS} daemons, ${tasks} tasks, ${perSecond}/s; event-loop lag p99 of each: ${lag.map(({ p99 }) => p99).join(' ')} ms, worst ${Math.max(...lag.map(({ max }) => max))} ms`;

/** Each caller makes a task, fetches its result, cancels another now and then, and begins again. */
async function keepMaking({ socket, instance }: Beside, isOver: () => boolean, wrong: string[]): Promise<number> {
  await using line = await taskLine(socket);
  const counts = await Promise.all(
    Array.from({ length: CALLERS }, (_, caller) => callOn(line, `${instance}-${caller}`, isOver, wrong)),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

async function callOn(line: TaskLine, name: string, isOver: () => boolean, wrong: string[]): Promise<number> {
  let count = 0;
  while (!isOver()) {
    const id = `${name}-${++count}`;
    try {
      const { taskId } = await line.create('busy', 'tally', { id });
      expect(await line.result(taskId)).toBe(id);
      expect((await line.get(taskId)).status).toBe('completed');
    } catch (error) {
      wrong.push(`${id}: ${error}`);
    }
  }
  return count;
}

function disposable(each: Beside[]) {
  return {
    each,
    [Symbol.asyncDispose]: async () => void (await Promise.all(each.map((one) => one[Symbol.asyncDispose]()))),
  };
}
