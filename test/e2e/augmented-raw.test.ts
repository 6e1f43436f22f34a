// A server that says whatever it is told to, at a real daemon: every error that the specification has for tasks, the ids of
// other servers and of other people's processes, and processes that die with a task open.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const FORM = { message: 'Who are you?', requestedSchema: { type: 'object', properties: {} } };
const SAMPLING = { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 10 };
const BEGIN: Step = ['elicitation/create', { ...FORM, task: {} }];
const UNKNOWN = '0'.repeat(32);
const ONE = { taskId: '$task' };

type Step = [method: string, params: object];

let d: Daemon;
beforeAll(async () => {
  const old = fixture('augment-raw', {}, { VERSION: '2025-06-18' });
  d = await daemon({ servers: { one: fixture('augment-raw'), two: fixture('augment-raw'), old } });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

async function run(server: string, steps: Step[], tree = 'troupe'): Promise<any[]> {
  const { data } = await d.request(`${tree}.call.${server}.run`, { steps }, { timeout: 60_000 });
  return data.structuredContent.value;
}
const open = async (tree = 'troupe'): Promise<AskView[]> => (await d.request(`${tree}.inbox`)).data;
const theAsk = () =>
  eventually(async () => {
    const [view] = await open();
    if (!view) throw new Error('no question is open');
    return view;
  }, 20_000);
const codes = (replies: any[]) => replies.map(({ error }) => error?.code ?? 'ok');

it('every error of the specification', async () => {
  const replies = await run('one', [
    BEGIN,
    ['tasks/get', ONE],
    ['tasks/get', { taskId: UNKNOWN }],
    ['tasks/result', { taskId: UNKNOWN }],
    ['tasks/cancel', { taskId: UNKNOWN }],
    ['tasks/get', {}],
    ['tasks/list', { cursor: 'made up' }],
    ['tasks/list', {}],
    ['tasks/cancel', ONE],
    ['tasks/cancel', ONE],
    ['tasks/result', ONE],
    ['tasks/remove', ONE],
    ['elicitation/create', { ...FORM, task: { ttl: 'long' } }],
    ['elicitation/create', { message: '?', requestedSchema: { type: 'array' }, task: {} }],
    ['tasks/get', ONE],
  ]);
  const [none, lost] = [-32602, -32601];
  expect(codes(replies)).toEqual([
    ...['ok', 'ok', none, none, none, none, none, 'ok'],
    ...['ok', none, 'ok', lost, none, none, 'ok'],
  ]);
  for (const { error } of replies) if (error) expect(error.message).toMatch(/^[^\n]{10,}$/);
  const [{ task }] = replies.map(({ result }) => result);
  expect(replies[10].result).toEqual({
    action: 'cancel',
    _meta: { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } },
  });
  expect(replies[14].result).toMatchObject({ taskId: task.taskId, status: 'cancelled' });
  expect(JSON.stringify([replies[1], replies[7], replies[8]])).not.toContain('related-task');
});

it('its status is told when it changes, and what it came to waits to be fetched', async () => {
  const running = run('one', [BEGIN, ['tasks/result', ONE], ['tasks/get', ONE]]);
  await d.request(`troupe.answer.${(await theAsk()).id}`, '{"action":"accept","content":{}}');
  const [{ result: made }, { result }, { result: task }] = await running;
  expect([result, task]).toMatchObject([{ action: 'accept', content: {} }, { status: 'completed' }]);
  expect(Date.parse(task.lastUpdatedAt)).toBeGreaterThanOrEqual(Date.parse(task.createdAt));
  const heard = (await d.request('troupe.call.one.heard')).data.structuredContent.value;
  expect(heard.filter(({ taskId }: any) => taskId === made.task.taskId)).toEqual([task]);
});

it('an error is the one that the plain question would have got', async () => {
  const asked: Step = ['sampling/createMessage', { ...SAMPLING, task: {} }];
  const running = run('one', [asked, ['tasks/result', ONE], ['tasks/get', ONE]]);
  await d.request(`troupe.answer.${(await theAsk()).id}`, '{"action":"decline"}');
  const [, { error }, { result }] = await running;
  const plain = run('one', [['sampling/createMessage', SAMPLING]]);
  await d.request(`troupe.answer.${(await theAsk()).id}`, '{"action":"decline"}');
  expect([{ error }]).toEqual(await plain);
  expect(result).toMatchObject({ status: 'failed', statusMessage: error.message });
});

it("another server's id, or that of another person's process, is exactly like an unknown one", async () => {
  const [{ result }] = await run('one', [BEGIN]);
  const { taskId } = result.task;
  const steps = (id: string): Step[] =>
    ['tasks/get', 'tasks/result', 'tasks/cancel'].map((method) => [method, { taskId: id }]);
  expect((await run('one', [['tasks/get', { taskId }]]))[0].result).toMatchObject({ taskId, status: 'cancelled' });
  for (const [server, tree] of [
    ['two', 'troupe'],
    ['one', 'troupe.as.bob'],
  ] as const) {
    const theirs = await run(server, steps(taskId), tree);
    expect(codes(theirs)).toEqual([-32602, -32602, -32602]);
    expect(theirs).toEqual(await run(server, steps(UNKNOWN), tree));
    expect((await run(server, [['tasks/list', {}]], tree))[0].result.tasks).toEqual([]);
  }
});

it('a server of an older version asks an ordinary question, whatever it says of a task', async () => {
  const running = run('old', [BEGIN, ['tasks/list', {}]]);
  await d.request(`troupe.answer.${(await theAsk()).id}`, '{"action":"decline"}');
  expect(await running).toMatchObject([{ result: { action: 'decline' } }, { error: { code: -32601 } }]);
});

it('a process that dies with a task open leaves no question behind, and its successor knows nothing of it', async () => {
  const running = run('two', [BEGIN, ['tasks/result', ONE]]).catch(() => 'lost');
  await theAsk();
  const { pid } = await d.server('two');
  process.kill(pid as number, 'SIGKILL');
  await eventually(async () => expect(await open()).toEqual([]), 20_000);
  expect(await running).toBe('lost');
  await d.until('two', 'ready', 30_000);
  expect((await run('two', [['tasks/list', {}]]))[0].result.tasks).toEqual([]);
  // The death of that process is worth a warning; nothing else that servers did here is.
  const warnings = async () =>
    (await d.log())
      .split('\n')
      .filter((line) => /"level":[456]0/.test(line))
      .map((line) => JSON.parse(line).server);
  await eventually(async () => expect(new Set(await warnings())).toEqual(new Set(['two'])), 10_000);
});
