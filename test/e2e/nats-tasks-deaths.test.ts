// Tasks on NATS through two daemons of one state directory: whichever is asked answers for both, and when the one that runs a
// task dies, or goes, nobody who waits is left hanging.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import { daemonName } from '../../src/config/names.ts';
import { ask, kindOf } from '../support/ask.ts';
import { type Beside, beside } from '../support/beside.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const one = `troupe.node.${daemonName(hostname(), undefined)}`;
const two = `troupe.node.${daemonName(hostname(), 'two')}`;
/** What is promised are 5 s; a machine under load gets more. */
const SLACK_MS = 50_000;
let d: Daemon;
let b: Beside;
let tallies: string;

beforeAll(async () => {
  d = await daemon();
  tallies = join(d.dir, 'tallies');
  const counting = fixture('tallies', { share: 'all', maxInFlight: 1 });
  counting.args.push(tallies);
  await d.write({ counting, slow: fixture('hangs'), steps: fixture('progress'), big: fixture('big') });
  for (const name of ['counting', 'slow', 'steps', 'big']) await d.until(name, 'ready');
  b = await beside(d, 'two');
}, 90_000);
afterAll(async () => {
  await b[Symbol.asyncDispose]();
  await d[Symbol.asyncDispose]();
});

const make = async (subject: string, body: object, more: Record<string, string> = {}): Promise<string> => {
  const reply = await d.request(subject, body, { headers: { 'Troupe-Task': '1', ...more } });
  expect([reply.code, reply.error]).toEqual([undefined, undefined]);
  return reply.data.taskId;
};
const resultOf = (id: string, tree: string) => d.request(`${tree}.task.result.${id}`, '', { timeout: SLACK_MS });
const statusOf = async (id: string, tree: string): Promise<string> =>
  (await d.request(`${tree}.task.get.${id}`)).data.status;
const executions = async (id: string) =>
  (await readFile(tallies, 'utf8').catch(() => '')).split('\n').filter((line) => line === id).length;
const hasBegun = (id: string) => eventually(async () => expect(await executions(id)).toBe(1), 20_000);

it('either answers for a task of the other, and the one that does not run it waits for its result', async () => {
  const id = await make(`${one}.call.slow.sleep`, { ms: 4_000 });
  const waiting = Promise.all([resultOf(id, two), resultOf(id, one), resultOf(id, 'troupe')]);
  expect(await statusOf(id, two)).toBe('working');
  expect((await d.request(`${two}.task.list`)).data.map((view: TaskView) => view.taskId)).toContain(id);
  for (const { data } of await waiting) expect(data.content[0].text).toBe('slept 4000 ms');
});

it('a cancellation through one stops the call that the other makes', async () => {
  const id = await make(`${one}.call.slow.sleep`, { ms: 59_000 });
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  const waiting = resultOf(id, one);
  expect((await d.request(`${two}.task.cancel.${id}`)).data.status).toBe('cancelled');
  expect((await waiting).code).toBe(499);
  await eventually(async () => (await d.server('slow')).inFlight === 0);
});

it('a stream through one tells the progress of what the other runs, and brings a large result', async () => {
  const id = await make(`${one}.call.steps.steps`, { count: 4, ms: 300 });
  const wanted = { 'Troupe-Stream': '1', 'Troupe-Accept': 'chunk' };
  const frames = await ask(await d.nats(), `${two}.task.result.${id}`, '', wanted).toTheEnd(SLACK_MS);
  expect(frames.map(kindOf).filter((kind) => kind === 'progress').length).toBeGreaterThan(0);
  expect(frames.map(kindOf).slice(-2)).toEqual(['result', 'end']);
  const large = await make(`${one}.call.big.big`, { bytes: 2 ** 21 });
  const parts = await ask(await d.nats(), `${two}.task.result.${large}`, '', wanted).toTheEnd(SLACK_MS);
  expect(parts.reduce((bytes, { data }) => bytes + data.length, 0)).toBeGreaterThan(2 ** 21);
});

it('the same key through both is one task', async () => {
  const key = { 'Troupe-Idempotency-Key': 'both' };
  const trees = Array.from({ length: 40 }, (_, n) => [one, two][n % 2]);
  const made = await Promise.all(trees.map((tree) => make(`${tree}.call.counting.tally`, { id: 'both' }, key)));
  expect(new Set(made).size).toBe(1);
  expect((await resultOf(made[0] ?? '', two)).data.content[0].text).toBe('both');
  expect(await executions('both')).toBe(1);
});

it('who waits at one is told when the other dies with the task, and nothing runs twice', async () => {
  const sent = await make(`${two}.call.counting.tally`, { id: 'sent', ms: 60_000 });
  await hasBegun('sent');
  const queued = await make(`${two}.call.counting.tally`, { id: 'queued' });
  const waiting = Promise.all([resultOf(sent, one), resultOf(queued, one)]);
  await b.kill();
  const [lost, ran] = await waiting;
  expect([lost.code, lost.data.data.troupe.delivery]).toEqual([502, 'outcome unknown']);
  expect(ran.data.content[0].text).toBe('queued');
  expect([await executions('sent'), await executions('queued')]).toEqual([1, 1]);
  expect(await statusOf(sent, 'troupe')).toBe('failed');
  await b.start();
}, 120_000);

it('who waits at one that goes is told so, and can go on waiting at the other', async () => {
  const id = await make(`${one}.call.slow.sleep`, { ms: 59_000 });
  const [plain, stream] = [
    resultOf(id, two),
    ask(await d.nats(), `${two}.task.result.${id}`, '', { 'Troupe-Stream': '1' }),
  ];
  await stream.atLeast(1);
  await b.cli('down');
  const told = await plain;
  expect([told.code, told.data.data.troupe.state]).toEqual([503, 'working']);
  expect((await stream.toTheEnd()).map(kindOf)).toEqual(['ack', 'error', 'end']);
  const again = resultOf(id, 'troupe');
  expect((await d.request(`troupe.task.cancel.${id}`)).data.status).toBe('cancelled');
  expect((await again).data.data.troupe).toMatchObject({ code: 'cancelled' });
  await b.start();
}, 120_000);

it('all that was told survives a kill -9; the example asks until there is somebody to answer', async () => {
  await b.kill();
  // Until the broker has seen that, it gives the dead one its share of the calls.
  const asked = () => d.request(`${two}.task.list`, '', { timeout: 1_000 });
  await eventually(() => expect(asked()).rejects.toMatchObject({ code: '503' }));
  const done = await make('troupe.as.alice.call.counting.tally', { id: 'done' });
  const bytes = (await resultOf(done, 'troupe.as.alice')).text;
  const first = await make('troupe.call.counting.tally', { id: 'first', ms: 60_000 });
  await hasBegun('first'); // and has the only place, so that the next is queued
  const { NATS_URL } = JSON.parse((await d.cli('env', '--json')).stdout);
  const words = ['examples/task.mjs', 'troupe.call.counting.tally', '{"id":"patient"}'];
  const example = execa(process.execPath, words, { cwd: ROOT, env: { NATS_URL }, timeout: 110_000, reject: false });
  const [said] = await once(example.stdout, 'data');
  await d.kill();
  await d.start();
  const queued = String(said).trim().slice('task '.length);
  expect((await resultOf(queued, 'troupe')).data.content[0].text).toBe('patient');
  expect((await resultOf(done, 'troupe.as.alice')).text).toBe(bytes);
  expect((await resultOf(first, 'troupe')).data.data.troupe.delivery).toBe('outcome unknown');
  expect(await example).toMatchObject({ exitCode: 0, stdout: `task ${queued}\npatient` });
  expect([await executions('done'), await executions('first'), await executions('patient')]).toEqual([1, 1, 1]);
}, 120_000);
