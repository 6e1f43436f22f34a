// A server makes a task of its question: it hears at once that it is taken, looks at it, comes for the answer, or cancels it.
// What it fetches is what the plain question would have been answered with.

import { describe, expect, it } from 'vitest';
import { FORM, SAMPLING, URL } from '../support/asks.ts';
import { augmentedStage } from '../support/augmented.ts';
import { eventually } from '../support/eventually.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const person = { by: 'troupe answer' };
const bytes = (text: string) => ({ ok: true as const, result: Buffer.from(text) });
const accept = (content: object) => bytes(JSON.stringify({ action: 'accept', content }));

describe('a question that is a task', () => {
  it('is taken at once, after it is on the disk', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const task = await s.begin();
    const [view] = s.asks.inbox.list();
    expect(s.store.get('ask', [view?.id ?? ''])).toMatchObject({ status: 'open' });
    expect(task).toEqual({
      taskId: expect.stringMatching(/^[0-9a-f]{32}$/),
      status: 'working',
      ttl: 900_000,
      pollInterval: 1_000,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      lastUpdatedAt: task.createdAt,
    });
    expect(await s.get(task.taskId)).toEqual(task);
  });

  it('reaches the host without a word of the task, and its answer the server in its own bytes', async () => {
    await using s = await augmentedStage();
    s.call();
    const { taskId } = await s.begin();
    await eventually(() => s.asked.length === 1);
    expect(String(s.asked[0]?.params)).toBe(JSON.stringify(FORM));
    const waiting = s.ask('tasks/result', { taskId });
    s.asked[0]?.answer(bytes('{"action":"accept", "content":{"age":9007199254740993},"_meta":{"x":1}}'));
    const { result } = await waiting;
    expect(result._meta).toEqual({ x: 1, [RELATED]: { taskId } });
    expect(s.lines.some((line) => line.includes('"accept", "content":{"age":9007199254740993}'))).toBe(true);
    expect(await s.get(taskId)).toMatchObject({ status: 'completed' });
    expect(s.told(taskId)).toEqual(['completed']);
  });

  it('is shown in the inbox without a word of the task', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    await s.begin(SAMPLING, { ttl: 60_000 }, 'sampling/createMessage');
    expect((await s.theAsk()).request).toEqual(SAMPLING);
  });

  it('may be answered by a rule before anybody looks, and still begins at work', async () => {
    const rules = [{ answer: 'decline' }];
    await using s = await augmentedStage({ canAnswer: false, asks: { rules } });
    s.call();
    const { taskId, status } = await s.begin();
    expect(status).toBe('working');
    const { result } = await s.ask('tasks/result', { taskId });
    expect(result).toEqual({ action: 'decline', _meta: { [RELATED]: { taskId } } });
    await eventually(() => s.told(taskId).length === 1);
    expect(s.told(taskId)).toEqual(['completed']);
  });

  it('is done when the person agrees to visit the address, and what happens there outlives it', async () => {
    await using s = await augmentedStage();
    s.call();
    const { taskId } = await s.begin(URL);
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer(bytes('{"action":"accept"}'));
    expect((await s.ask('tasks/result', { taskId })).result).toMatchObject({ action: 'accept' });
    s.session.close();
    s.asks.completed(s.member, URL.elicitationId, Buffer.from('{"elicitationId":"e1"}'));
    expect([s.completed, s.withdrawn]).toEqual([['{"elicitationId":"e1"}'], []]);
  });

  it('is an ordinary one to a server of an older version, which has no tasks', async () => {
    await using s = await augmentedStage();
    const old = s.peer({ facts: { era: '2025-06-18' } as never });
    s.call();
    const answer = old.ask('elicitation/create', { ...FORM, task: { ttl: 'x' } });
    await eventually(() => s.asked.length === 1);
    expect(String(s.asked[0]?.params)).toBe(JSON.stringify(FORM));
    s.asked[0]?.answer(accept({ age: 30 }));
    expect((await answer).result).toEqual({ action: 'accept', content: { age: 30 } });
    for (const method of ['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel'])
      expect((await old.ask(method, { taskId: 'x' })).error.code).toBe(-32601);
  });
});

describe('tasks/result', () => {
  it('waits until it has ended, for everyone who asks, and then has it for whoever comes later', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const { taskId } = await s.begin();
    const { id } = await s.theAsk();
    s.say({ id: 'gives up', method: 'tasks/result', params: { taskId } });
    s.say({ method: 'notifications/cancelled', params: { requestId: 'gives up' } });
    const waiting = [s.ask('tasks/result', { taskId }), s.ask('tasks/result', { taskId })];
    expect((await s.get(taskId)).status).toBe('working');
    await s.asks.inbox.answer(id, { action: 'accept', content: Buffer.from('{"age":33}') }, person);
    const answers = [...(await Promise.all(waiting)), await s.ask('tasks/result', { taskId })];
    for (const { result } of answers)
      expect(result).toEqual({ action: 'accept', content: { age: 33 }, _meta: { [RELATED]: { taskId } } });
    expect(s.said.filter((each) => each.id === 'gives up')).toEqual([]);
  });

  it('is the very error that the plain question would have got, and the status says why', async () => {
    await using s = await augmentedStage();
    s.call();
    const { taskId } = await s.begin(SAMPLING, {}, 'sampling/createMessage');
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer({ ok: false, error: Buffer.from('{"code":-1,"message":"User said no","data":{"n":1.50}}') });
    const { error, result } = await s.ask('tasks/result', { taskId });
    expect([error, result]).toEqual([{ code: -1, message: 'User said no', data: { n: 1.5 } }, undefined]);
    expect(await s.get(taskId)).toMatchObject({ status: 'failed', statusMessage: 'User said no' });
    expect(s.told(taskId)).toEqual(['failed']);
  });

  it('of a question that nobody answered in time is what the plain one would have got', async () => {
    await using s = await augmentedStage({ canAnswer: false, asks: { timeoutMs: 300 } });
    s.call();
    const form = await s.begin();
    const sampling = await s.begin(SAMPLING, {}, 'sampling/createMessage');
    expect((await s.ask('tasks/result', { taskId: form.taskId })).result.action).toBe('cancel');
    expect((await s.ask('tasks/result', { taskId: sampling.taskId })).error).toMatchObject({ code: -1 });
    expect([(await s.get(form.taskId)).status, (await s.get(sampling.taskId)).status]).toEqual(['completed', 'failed']);
    expect(s.closed.map(({ ending }) => ending.outcome)).toEqual(['expired', 'expired']);
  });
});

describe('a task that is cancelled', () => {
  it('withdraws the question: the host is told, and no later answer counts', async () => {
    await using s = await augmentedStage();
    s.call();
    const { taskId } = await s.begin();
    await eventually(() => s.asked.length === 1);
    const waiting = s.ask('tasks/result', { taskId });
    const { result } = await s.ask('tasks/cancel', { taskId });
    expect(result).toMatchObject({ taskId, status: 'cancelled', statusMessage: expect.any(String) });
    expect([s.withdrawn, s.asks.inbox.list()]).toEqual([['elicitation/create'], []]);
    expect((await waiting).result).toEqual({ action: 'cancel', _meta: { [RELATED]: { taskId } } });
    s.asked[0]?.answer(accept({ age: 30 }));
    expect((await s.ask('tasks/cancel', { taskId })).error.code).toBe(-32602);
    expect([(await s.get(taskId)).status, s.told(taskId)]).toEqual(['cancelled', ['cancelled']]);
  });

  it('cannot be one that has ended, and that one stays as it is', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const { taskId } = await s.begin();
    await s.asks.inbox.answer((await s.theAsk()).id, { action: 'decline' }, person);
    const { error } = await s.ask('tasks/cancel', { taskId });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('completed') });
    expect((await s.get(taskId)).status).toBe('completed');
  });

  it('is one whose call is over, unless it has its answer', async () => {
    await using s = await augmentedStage();
    const request = s.call();
    const [done, open, model] = [
      await s.begin(),
      await s.begin(),
      await s.begin(SAMPLING, {}, 'sampling/createMessage'),
    ];
    await eventually(() => s.asked.length === 3);
    s.asked[0]?.answer(accept({ age: 30 }));
    await eventually(async () => (await s.get(done.taskId)).status === 'completed');
    s.lane.answer(request.id, 'result', Buffer.from('{}'));
    const statuses = await Promise.all([done, open, model].map(async ({ taskId }) => (await s.get(taskId)).status));
    expect(statuses).toEqual(['completed', 'cancelled', 'cancelled']);
    expect((await s.ask('tasks/result', { taskId: model.taskId })).error.code).toBe(-1);
    expect(s.withdrawn).toHaveLength(2);
  });
});
