// How long servers' tasks are kept, and for whom: as long as there is a connection, or one to the same server again; not more
// than there is room for; and not at all where the server took its question back.

import { describe, expect, it } from 'vitest';
import type { InFlight } from '../../src/calls/request.ts';
import { FORM, SAMPLING } from '../support/asks.ts';
import { type AugmentedStage, augmentedStage } from '../support/augmented.ts';
import { eventually } from '../support/eventually.ts';

const person = { by: 'troupe answer' };
const idle = (request: InFlight) => request.holds === 0;

/** One that has its answer, and one that has none yet. */
async function two(s: AugmentedStage) {
  const done = await s.begin();
  await s.asks.inbox.answer((await s.theAsk()).id, { action: 'decline' }, person);
  return [done.taskId, (await s.begin()).taskId] as const;
}

describe('when the connection is gone', () => {
  it('what is open is withdrawn, and what has ended can be fetched over the next one', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    const request = s.call();
    const [done, open] = await two(s);
    s.session.close();
    expect([s.asks.inbox.list(), idle(request)]).toEqual([[], true]);
    const before = s.said.length;
    expect(await s.get(done)).toMatchObject({ status: 'completed' });
    expect((await s.ask('tasks/result', { taskId: done })).result.action).toBe('decline');
    expect(await s.get(open)).toMatchObject({ status: 'cancelled', statusMessage: expect.stringContaining('lost') });
    expect(s.said.slice(before).every(({ method }) => method === undefined)).toBe(true);
    expect(s.told(open)).toEqual([]); // nobody was there
  });

  it('and the process with it, nothing is left for its successor', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    const config = { ...s.member.config, transport: 'stdio' } as typeof s.member.config;
    Object.assign(s.member, { config });
    const request = s.call();
    const ids = await two(s);
    s.session.close();
    expect([s.asks.inbox.list(), idle(request)]).toEqual([[], true]);
    for (const taskId of ids) expect((await s.get(taskId)).code).toBe(-32602);
  });

  it('but not when only the session was forgotten and is opened again', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const [done, open] = await two(s);
    const opening = s.session.open().catch(() => {});
    expect(await s.get(done)).toMatchObject({ status: 'completed' });
    expect(await s.get(open)).toMatchObject({ status: 'working' });
    const waiting = s.ask('tasks/result', { taskId: open });
    await s.asks.inbox.answer((await s.theAsk()).id, { action: 'decline' }, person);
    expect((await waiting).result.action).toBe('decline');
    expect(s.told(open)).toEqual(['completed']);
    s.lane.detach('the test is over');
    await opening;
  });
});

describe('a question that the server takes back', () => {
  it('before it knows of the task leaves none', async () => {
    await using s = await augmentedStage();
    const request = s.call();
    s.say({ id: 'q', method: 'elicitation/create', params: { ...FORM, task: {} } });
    s.say({ method: 'notifications/cancelled', params: { requestId: 'q' } });
    await eventually(() => s.closed.length === 1);
    await s.store.flush();
    await eventually(async () => (await s.ask('tasks/list')).result.tasks.length === 0);
    expect([idle(request), s.asks.inbox.list(), s.said.filter(({ id }) => id === 'q')]).toEqual([true, [], []]);
  });

  it('afterwards is none any more: a task is cancelled by its id', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const { taskId } = await s.begin();
    s.say({ method: 'notifications/cancelled', params: { requestId: 't1' } });
    expect(await s.get(taskId)).toMatchObject({ status: 'working' });
    expect(s.asks.inbox.list()).toHaveLength(1);
  });
});

it('it is taken only when it is known whose question it is', async () => {
  await using s = await augmentedStage({ canAnswer: false });
  const [alice, bob] = [s.call('a', { principal: 'alice' }), s.call('b', { principal: 'bob' })];
  s.say({ id: 'q', method: 'elicitation/create', params: { ...FORM, task: {} } });
  expect((await s.ask('tasks/list')).result.tasks).toEqual([]);
  expect(s.said.some(({ id }) => id === 'q')).toBe(false);
  s.lane.answer(alice.id, 'result', Buffer.from('{}'));
  const { task } = (await s.answerTo('q')).result;
  expect(await s.get(task.taskId)).toMatchObject({ status: 'working' });
  expect([(await s.theAsk()).principal, idle(bob)]).toEqual(['bob', false]);
});

it('it begins at work also when it is over before it could be taken, and that is told next', async () => {
  await using s = await augmentedStage({ canAnswer: false });
  const request = s.call();
  s.say({ id: 'q', method: 'elicitation/create', params: { ...FORM, task: {} } });
  s.lane.answer(request.id, 'result', Buffer.from('{}')); // long before anything is on the disk
  const { taskId, status } = (await s.answerTo('q')).result.task;
  expect(status).toBe('working');
  await eventually(() => expect(s.told(taskId)).toEqual(['cancelled']));
  expect(s.said.map(({ id, method }) => id ?? method)).toEqual(['q', 'notifications/tasks/status']);
  expect(await s.get(taskId)).toMatchObject({ status: 'cancelled' });
});

describe('there is room', () => {
  it('for so many of a server as may be open; then what has ended first makes place', async () => {
    await using s = await augmentedStage({ canAnswer: false, asks: { maxOpen: 3, rules: [{ answer: 'decline' }] } });
    s.call();
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      const { taskId } = await s.begin();
      await s.ask('tasks/result', { taskId });
      ids.push(taskId);
    }
    expect((await s.ask('tasks/list')).result.tasks.map((each: any) => each.taskId)).toEqual(ids.slice(2));
    expect((await s.get(ids[0] ?? '')).code).toBe(-32602);
    const other = s.peer({ name: 'beta', server: 'beta' });
    await other.begin(); // which another server does not take
    expect((await s.ask('tasks/list')).result.tasks).toHaveLength(3);
  });

  it('for 16 MB of answers of a server; then, too, what has ended first makes place', async () => {
    await using s = await augmentedStage();
    s.call();
    const answered = async (size: number) => {
      const { taskId } = await s.begin(SAMPLING, {}, 'sampling/createMessage');
      await eventually(() => s.asked.length === 1);
      const content = { type: 'text', text: 'x'.repeat(size) };
      const message = { role: 'assistant', model: 'm', content };
      s.asked.pop()?.answer({ ok: true, result: Buffer.from(JSON.stringify(message)) });
      await eventually(async () => (await s.get(taskId)).status === 'completed', 30_000);
      return taskId;
    };
    const [first, second, third] = [await answered(9e6), await answered(9e6), await answered(9)];
    expect((await s.ask('tasks/list')).result.tasks.map((each: any) => each.taskId)).toEqual([second, third]);
    expect((await s.get(first)).code).toBe(-32602);
  });
});
