// Tasks as anybody with a NATS client sees them: made by a header, fetched later, told of on the bus, and nobody else's.

import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Msg } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import { daemonName } from '../../src/config/names.ts';
import { ask, headersOf, joined, kindOf } from '../support/ask.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const TASK = { 'Troupe-Task': '1' };
const NODE = `troupe.node.${daemonName(hostname(), undefined)}`;
const LONG_MS = 50_000;
let d: Daemon;
let tallies: string;
const events: { subject: string; told: TaskView; isOnce: boolean }[] = [];

beforeAll(async () => {
  d = await daemon({ troupe: { nats: { maxPayloadBytes: '1MB' } } });
  tallies = join(d.dir, 'tallies');
  const counting = fixture('tallies', { share: 'all' });
  counting.args.push(tallies);
  await d.write({
    ...{ tallies: counting, slow: fixture('hangs', { share: 'all' }), steps: fixture('progress', { share: 'all' }) },
    ...{ big: fixture('big'), curious: fixture('inquires', { trust: true }), echo: fixture('echo') },
  });
  for (const name of ['tallies', 'slow', 'steps', 'big', 'curious', 'echo']) await d.until(name, 'ready');
  const nc = await d.nats();
  const hear = (_: unknown, msg: Msg) =>
    void events.push({ subject: msg.subject, told: msg.json(), isOnce: msg.headers?.has('Nats-Msg-Id') ?? false });
  for (const subject of ['troupe.ev.task.*.*', 'troupe.as.*.ev.task.*.*']) nc.subscribe(subject, { callback: hear });
  await nc.flush();
}, 60_000);
afterAll(() => d[Symbol.asyncDispose]());

const make = async (subject: string, body: object | string = {}, more: Record<string, string> = {}) => {
  const reply = await d.request(subject, body, { headers: { ...TASK, ...more } });
  expect([reply.code, reply.error]).toEqual([undefined, undefined]);
  expect(reply.headers).toEqual({ 'Troupe-Task-Id': reply.data.taskId });
  return reply.data as TaskView;
};
const resultOf = (id: string, tree = 'troupe', headers = {}) =>
  d.request(`${tree}.task.result.${id}`, '', { headers, timeout: LONG_MS });
const executions = async (id: string) =>
  (await readFile(tallies, 'utf8').catch(() => '')).split('\n').filter((line) => line === id).length;
const statusesTold = (id: string) => events.filter(({ told }) => told.taskId === id).map(({ told }) => told.status);

describe.each([
  ['troupe', '_'],
  ['troupe.as.alice', 'alice'],
  [NODE, '_'],
])('on %s', (tree, principal) => {
  it('a call is told as a task at once, and its result is what the call would have been answered with', async () => {
    const body = '{"n":9007199254740993, "m":1e2}';
    const view = await make(`${tree}.call.echo.raw`, body, { 'Troupe-Ttl': '2h' });
    expect(view).toMatchObject({ ttl: 7_200_000, server: 'echo', tool: 'raw', principal });
    expect(view.taskId).toMatch(/^[\w-]{22,32}$/);
    const [plain, kept] = [await d.request(`${tree}.call.echo.raw`, body), await resultOf(view.taskId, tree)];
    expect([kept.text, kept.headers]).toEqual([plain.text, {}]);
    const { data: now } = await d.request(`${tree}.task.get.${view.taskId}`);
    expect(now).toMatchObject({ taskId: view.taskId, status: 'completed', phase: 'ended', attempt: 1 });
    expect((await d.request(`${tree}.task.list`)).data[0]).toEqual(now);
    await eventually(() => expect(statusesTold(view.taskId).at(-1)).toBe('completed'));
    const told = events.filter(({ told: { taskId } }) => taskId === view.taskId);
    const place = principal === '_' ? 'troupe' : tree;
    for (const each of told) expect(each.subject).toBe(`${place}.ev.task.${view.taskId}.${each.told.status}`);
    expect([told.every(({ isOnce }) => isOnce), told.at(-1)?.told]).toEqual([
      true,
      { ...now, lastUpdatedAt: expect.any(String) },
    ]);
  });

  it('a task is cancelled, once, and its server hears of it', async () => {
    const { taskId } = await make(`${tree}.call.slow.sleep`, { ms: 60_000 });
    const waiting = resultOf(taskId, tree);
    await eventually(async () => (await d.server('slow')).inFlight === 1);
    expect((await d.request(`${tree}.task.cancel.${taskId}`)).data).toMatchObject({ taskId, status: 'cancelled' });
    expect((await waiting).code).toBe(499);
    expect((await d.request(`${tree}.task.cancel.${taskId}`)).code).toBe(409);
    expect((await d.request(`${tree}.task.get.${taskId}`)).data.status).toBe('cancelled');
    await eventually(async () => (await d.server('slow')).inFlight === 0);
    await eventually(() => expect(statusesTold(taskId).at(-1)).toBe('cancelled'));
  });
});

it('a task of one caller is nothing to another', async () => {
  const { taskId } = await make('troupe.as.alice.call.tallies.tally', { id: 'hers' });
  expect((await resultOf(taskId, 'troupe.as.alice')).data.content[0].text).toBe('hers');
  const none = 'x'.repeat(taskId.length);
  for (const tree of ['troupe.as.bob', 'troupe', NODE]) {
    expect((await d.request(`${tree}.task.list`)).data.map((view: TaskView) => view.taskId)).not.toContain(taskId);
    for (const verb of ['get', 'result', 'cancel']) {
      const subject = `${tree}.task.${verb}`;
      const [hers, nobodys] = [await d.request(`${subject}.${taskId}`), await d.request(`${subject}.${none}`)];
      expect(hers.code).toBe(404);
      expect(JSON.stringify(hers)).toBe(JSON.stringify(nobodys).replaceAll(none, taskId));
    }
  }
  await eventually(() => expect(statusesTold(taskId).at(-1)).toBe('completed'));
  const subjects = events.filter(({ told }) => told.taskId === taskId).map(({ subject }) => subject);
  expect(subjects.filter((subject) => !subject.startsWith('troupe.as.alice.ev.task.'))).toEqual([]);
});

it('what a tool or a server reports as an error comes as a call would have it', async () => {
  const wrong = await resultOf((await make('troupe.call.tallies.wrong', { id: 'w' })).taskId);
  expect([wrong.headers, wrong.data.isError]).toEqual([{ 'Mcp-Is-Error': 'true' }, true]);
  const refused = await resultOf((await make('troupe.call.tallies.refuse', { id: 'r' })).taskId);
  expect(refused.text).toBe('{"code":-32000,"message":"no r today"}');
  expect(refused.headers).toMatchObject({ 'Nats-Service-Error-Code': '500', 'Mcp-Error-Code': '-32000' });
});

it('the same key of the same caller is the same task, and runs once', async () => {
  const key = { 'Troupe-Idempotency-Key': 'monday, 9:00' };
  const body = { id: 'keyed', ms: 50 };
  const made = await Promise.all(Array.from({ length: 60 }, () => make('troupe.call.tallies.tally', body, key)));
  expect(new Set(made.map(({ taskId }) => taskId)).size).toBe(1);
  const [{ taskId } = { taskId: '' }] = made;
  expect((await resultOf(taskId)).data.content[0].text).toBe('keyed');
  expect((await make('troupe.call.tallies.tally', body, key)).taskId).toBe(taskId);
  expect(await executions('keyed')).toBe(1);
  const other = await d.request('troupe.call.tallies.tally', { id: 'another' }, { headers: { ...TASK, ...key } });
  expect([other.code, other.error]).toEqual([400, expect.stringMatching(/key was used for another call/)]);
  expect((await make('troupe.as.bob.call.tallies.tally', { id: 'bobs' }, key)).taskId).not.toBe(taskId);
});

it('is made without a reply subject too', async () => {
  (await d.nats()).publish('troupe.as.quiet.call.tallies.tally', '{"id":"quiet"}', { headers: headersOf(TASK) });
  const { taskId } = await eventually(async () => {
    const [view] = (await d.request('troupe.as.quiet.task.list')).data as TaskView[];
    if (!view) throw new Error('not yet');
    return view;
  });
  expect((await resultOf(taskId, 'troupe.as.quiet')).data.content[0].text).toBe('quiet');
  expect(await executions('quiet')).toBe(1);
});

it('a result that does not fit into a message comes in chunks, in a stream too', async () => {
  const bytes = 3 * 2 ** 20;
  const { taskId } = await make('troupe.call.big.big', { bytes });
  const subject = `troupe.task.result.${taskId}`;
  for (const wanted of [{ 'Troupe-Accept': 'chunk' }, { 'Troupe-Accept': 'chunk', 'Troupe-Stream': '1' }]) {
    const whole = joined(await ask(await d.nats(), subject, '', wanted).toTheEnd(LONG_MS));
    expect(JSON.parse(whole.toString()).content[0].text).toHaveLength(bytes);
  }
  expect((await resultOf(taskId)).code).toBe(413);
});

it('a stream tells the progress of the task up to the last, and so does the bus', async () => {
  const nc = await d.nats();
  const heard: { subject: string; progress: number }[] = [];
  nc.subscribe('troupe.ev.progress.*', {
    callback: (_, msg) =>
      void heard.push({ subject: msg.subject, progress: msg.json<{ progress: number }>().progress }),
  });
  const { taskId } = await make('troupe.call.steps.steps', { count: 5, ms: 200 });
  const frames = [...(await ask(nc, `troupe.task.result.${taskId}`, '', { 'Troupe-Stream': '1' }).toTheEnd(LONG_MS))];
  const kinds = frames.map(kindOf);
  expect([kinds[0], new Set(kinds.slice(1, -2)), kinds.slice(-2)]).toEqual([
    'ack',
    new Set(['progress']),
    ['result', 'end'],
  ]);
  expect(frames[0]?.json()).toEqual({ requestId: taskId });
  expect(frames.at(-3)?.json()).toEqual({ progress: 5, total: 5, message: 'step 5' });
  await eventually(() => expect(heard.at(-1)).toEqual({ subject: `troupe.ev.progress.${taskId}`, progress: 5 }));
});

it('a task that asks is told to wait for an answer, and a stream has the question', async () => {
  const params = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };
  const { taskId } = await make('troupe.call.curious.inquire', { method: 'elicitation/create', params });
  const asked = ask(await d.nats(), `troupe.task.result.${taskId}`, '', { 'Troupe-Stream': '1' });
  const { id } = await eventually(() => {
    const [frame] = asked.messages.filter((msg) => kindOf(msg) === 'ask');
    if (!frame) throw new Error('it was not told of a question');
    return frame.json<{ id: string }>();
  }, 20_000);
  await eventually(() => expect(statusesTold(taskId).at(-1)).toBe('input_required'), 20_000);
  await d.request(`troupe.answer.${id}`, '{"action":"accept","content":{"name":"Ada"}}');
  const frames = await asked.toTheEnd(LONG_MS);
  expect(frames.map(kindOf).filter((kind) => kind !== 'ka')).toEqual(['ack', 'ask', 'result', 'end']);
  expect(frames.at(-2)?.string()).toContain('Ada');
  await eventually(() => expect(statusesTold(taskId).slice(-3)).toEqual(['input_required', 'working', 'completed']));
});

const KEY = 'Troupe-Idempotency-Key';

it.each([
  ['Troupe-Task is not 1', { 'Troupe-Task': 'true' }, /Troupe-Task must be 1/],
  ['a stream is wanted', { ...TASK, 'Troupe-Stream': '1' }, /where you ask for its result/],
  ['it shall have another id', { ...TASK, 'Troupe-Request-Id': 'mine' }, /Troupe-Idempotency-Key in place of/],
  ['it has a time-out', { ...TASK, 'Troupe-Timeout': '1s' }, /Troupe-Ttl in place of/],
  ['its ttl is no time', { ...TASK, 'Troupe-Ttl': 'soon' }, /Troupe-Ttl must be a duration/],
  ['its ttl is nothing', { ...TASK, 'Troupe-Ttl': '0' }, /Troupe-Ttl must be a duration/],
  ['its key is too long', { ...TASK, [KEY]: 'k'.repeat(257) }, /1 to 256 printable/],
  ['its key is nothing', { ...TASK, [KEY]: '' }, /1 to 256 printable/],
  ['its key cannot be printed', { ...TASK, [KEY]: 'a\u0007b' }, /1 to 256 printable/],
  ['there is a key alone', { [KEY]: 'k' }, /is for tasks/],
  ['there is a ttl alone', { 'Troupe-Ttl': '1h' }, /is for tasks/],
  ['it is no call', TASK, /only the call of a tool/],
])('no task is made, and nothing is called, when %s', async (what, headers, sentence) => {
  const path = what === 'it is no call' ? 'list.tallies.tools' : 'call.tallies.tally';
  const asked = ask(await d.nats(), `troupe.as.refused.${path}`, '{"id":"refused"}', headers);
  const [reply] = await asked.atLeast(1);
  expect(reply?.headers?.get('Nats-Service-Error-Code')).toBe('400');
  expect(reply?.json<{ message: string }>().message).toMatch(sentence);
  expect((await d.request('troupe.as.refused.task.list')).data).toEqual([]);
  expect(await executions('refused')).toBe(0);
});

it('the example makes one, and finds it again by its key', async () => {
  const { NATS_URL } = JSON.parse((await d.cli('env', '--json')).stdout);
  const words = ['troupe.call.tallies.tally', '{"id":"example","ms":100}', 'once'];
  const run = () => execa(process.execPath, ['examples/task.mjs', ...words], { cwd: ROOT, env: { NATS_URL } });
  const [first, second] = [(await run()).stdout, (await run()).stdout];
  expect(first).toMatch(/^task [\w-]{22,32}\nexample$/);
  expect([second, await executions('example')]).toEqual([first, 1]);
}, 60_000);
