// What callers are told of their tasks on NATS, and what nobody else is: the door's own part, with tasks in memory behind it.

import { createInbox, type Msg, type NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, kindOf } from '../support/ask.ts';
import { eventually } from '../support/eventually.ts';
import { taskView } from '../support/little-tasks.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { requester, taskDoor } from '../support/task-door.ts';

let nats: TestServer;
let client: NatsConnection;
const request = requester(() => client);
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 16 * 1024 });
  client = await nats.connect();
});
afterAll(() => nats[Symbol.asyncDispose]());

const TREES = [
  ['troupe', '_'],
  ['troupe.as.al=2Eice', 'al.ice'],
  ['troupe.node.host-1', '_'],
] as const;

describe.each(TREES)('on %s', (tree, principal) => {
  test('a task is shown as it is', async () => {
    const view = taskView('one', { principal, statusMessage: 'soon', progress: { progress: 1 } });
    await using _ = await taskDoor(nats, [view]);
    const { data, headers } = await request(`${tree}.task.get.one`);
    expect([data, headers]).toEqual([view, {}]);
  });

  test('a task is cancelled once', async () => {
    await using it = await taskDoor(nats, [taskView('one', { principal })]);
    expect((await request(`${tree}.task.cancel.one`)).data).toMatchObject({ taskId: 'one', status: 'cancelled' });
    expect(it.known.get('one')?.status).toBe('cancelled');
    const again = await request(`${tree}.task.cancel.one`);
    expect([again.code, again.error, again.data.code]).toEqual([409, 'task one has ended: it is cancelled', -32602]);
  });

  test('only its own tasks are listed', async () => {
    const mine = taskView('one', { principal });
    await using _ = await taskDoor(nats, [mine, taskView('two', { principal: 'bob' })]);
    const { data, headers } = await request(`${tree}.task.list`);
    expect([data, headers]).toEqual([[mine], {}]);
  });

  test('the task of another is answered like one that there is not', async () => {
    await using it = await taskDoor(nats, [taskView('hers', { principal: 'bob' })]);
    for (const verb of ['get', 'cancel', 'result']) {
      const [other, none] = await Promise.all([
        request(`${tree}.task.${verb}.hers`),
        request(`${tree}.task.${verb}.none`),
      ]);
      expect([other.code, other.error]).toEqual([404, `there is no task hers; ${tree}.task.list has those there are`]);
      expect(other).toEqual(JSON.parse(JSON.stringify(none).replaceAll('none', 'hers')));
    }
    expect([it.known.get('hers')?.status, it.troubles]).toEqual(['working', []]);
  });
});

test('a task that somebody else looks for too often is not told apart either', async () => {
  await using _ = await taskDoor(nats, [taskView('hers', { principal: 'bob' })], { guesses: 1 });
  expect((await request('troupe.task.get.none')).code).toBe(404);
  const [other, none] = await Promise.all([request('troupe.task.get.hers'), request('troupe.task.get.nobodys')]);
  expect([other.code, other.error]).toEqual([429, 'too many ids that there are not']);
  expect(other).toEqual(none);
});

test('to ask for one that is not there is one guess, whatever was asked', async () => {
  await using it = await taskDoor(nats, []);
  for (const [n, verb] of ['get', 'cancel', 'result'].entries()) {
    expect((await request(`troupe.task.${verb}.none`)).code).toBe(404);
    expect(it.missed).toBe(n + 1);
  }
});

test('a cancellation is served without a reply subject, and nothing is served for one that is no inbox', async () => {
  await using it = await taskDoor(nats, [taskView('one'), taskView('two')]);
  const heard: string[] = [];
  client.subscribe('troupe.call.gh.drop', { callback: (_, msg) => void heard.push(msg.string()) });
  for (const path of ['cancel.one', 'get.one', 'result.one', 'list'])
    client.publish(`troupe.task.${path}`, '', { reply: 'troupe.call.gh.drop' });
  for (const path of ['get.two', 'result.two', 'list', 'cancel.two']) client.publish(`troupe.task.${path}`);
  await eventually(() => expect(it.known.get('two')?.status).toBe('cancelled'));
  await client.flush();
  expect([heard, it.known.get('one')?.status, it.waiters('two'), it.troubles]).toEqual([[], 'working', 0, []]);
});

test.each(['get.one', 'cancel.one', 'list', 'get.none'])('%s ends a stream, if one was wanted', async (path) => {
  await using it = await taskDoor(nats, [taskView('one')]);
  const frames = await ask(client, `troupe.task.${path}`, '', { 'Troupe-Stream': '1' }).toTheEnd();
  expect(frames.map(kindOf)).toEqual([path === 'get.none' ? 'error' : 'result', 'end']);
  expect(it.troubles).toEqual([]);
});

describe('where several state directories share a bus', () => {
  const all = async (subject: string, count: number): Promise<Msg[]> => {
    const [replies, inbox] = [[] as Msg[], createInbox()];
    const subscription = client.subscribe(inbox, { callback: (_, msg) => void replies.push(msg) });
    client.publish(subject, '', { reply: inbox });
    await eventually(() => expect(replies).toHaveLength(count));
    subscription.unsubscribe();
    return replies;
  };

  test('one daemon of that which has the task answers, before those who have not', async () => {
    const views = [taskView('one')];
    await using first = await taskDoor(nats, views);
    await using second = await taskDoor(nats, views);
    await using other = await taskDoor(nats, [], { family: 'f2', daemon: 'host-2' });
    const replies = await all('troupe.task.get.one', 2);
    expect(replies.map((msg) => msg.headers?.get('Nats-Service-Error-Code') ?? '')).toEqual(['', '404']);
    expect(replies[0]?.json()).toEqual(views[0]);
    const [cancelled] = await all('troupe.task.cancel.one', 1);
    expect(cancelled?.json()).toMatchObject({ status: 'cancelled' });
    expect([first, second].map((it) => it.known.get('one')?.status).sort()).toEqual(['cancelled', 'working']);
    expect([first.missed, second.missed, other.missed > 0]).toEqual([0, 0, true]);
  });

  test.each([
    ['does not know it', 1e9],
    ['says no more whether it knows one', 0],
  ])('a result that takes its time is not spoilt by who %s', async (_, guesses) => {
    await using it = await taskDoor(nats, [taskView('slow', { principal: 'alice' })]);
    await using __ = await taskDoor(nats, [], { family: 'f2', daemon: 'host-2', guesses });
    const replies: Msg[] = [];
    const inbox = createInbox();
    client.subscribe(inbox, { callback: (_, msg) => void replies.push(msg) });
    client.publish('troupe.as.alice.task.result.slow', '', { reply: inbox });
    await eventually(() => it.waiters('slow') === 1);
    await all('troupe.as.alice.task.result.none', 2); // by then both would have said that they do not know the other
    expect(replies).toEqual([]);
    it.end('slow', { ok: true, result: Buffer.from('{"n":1}'), isError: false });
    await eventually(() => expect(replies.map((msg) => msg.string())).toEqual(['{"n":1}']));
  });

  test('each lists its own', async () => {
    await using _ = await taskDoor(nats, [taskView('one')]);
    await using __ = await taskDoor(nats, [taskView('two')], { family: 'f2', daemon: 'host-2' });
    const lists = (await all('troupe.task.list', 2)).map((msg) => msg.json<{ taskId: string }[]>()[0]?.taskId);
    expect(lists.sort()).toEqual(['one', 'two']);
  });
});

describe('a long list', () => {
  const many = Array.from({ length: 205 }, (_, n) => taskView(`t-${n}`, { statusMessage: 'm'.repeat(100 + n) }));

  test.each([10, 100])('has pages, and none is lost or told twice, also from pages of %i', async (pageSize) => {
    await using it = await taskDoor(nats, many, { pageSize });
    const [seen, sizes]: [string[], number[]] = [[], []];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page = await request('troupe.task.list', cursor ? JSON.stringify({ cursor }) : '');
      expect(page.code).toBeUndefined();
      seen.push(...page.data.map(({ taskId }: { taskId: string }) => taskId));
      sizes.push(page.data.length);
      cursor = page.headers['Troupe-Next'] || undefined;
    }
    expect(seen).toEqual(many.map(({ taskId }) => taskId));
    // Pages of ten fit as they are; of a hundred, each is told in several messages.
    if (pageSize === 10) expect(sizes.slice(0, -1)).toEqual(Array(20).fill(10));
    else expect(sizes.length).toBeGreaterThan(5);
    expect(it.troubles).toEqual([]);
  });

  test('goes on from its page when the task where it ended is gone', async () => {
    await using it = await taskDoor(nats, many);
    const first = await request('troupe.task.list');
    it.known.delete(first.data.at(-1).taskId);
    const cursor = first.headers['Troupe-Next'];
    const second = await request('troupe.task.list', JSON.stringify({ cursor }));
    expect(second.data[0].taskId).toBe('t-0');
  });

  test('shows a task that no message could hold without the words of its server', async () => {
    const large = taskView('large', { statusMessage: 'x'.repeat(20_000), progress: { progress: 1, message: 'y' } });
    const named = taskView('named', { tool: 't'.repeat(20_000) });
    await using _ = await taskDoor(nats, [large, named, taskView('small')]);
    const shown = [taskView('large'), taskView('named', { tool: 't'.repeat(200) }), taskView('small')];
    expect((await request('troupe.task.list')).data).toEqual(shown);
  });

  test('ends a stream where there is more', async () => {
    await using _ = await taskDoor(nats, many);
    const frames = await ask(client, 'troupe.task.list', '', { 'Troupe-Stream': '1' }).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['result', 'end']);
    expect(frames[0]?.headers?.has('Troupe-Next')).toBe(true);
  });

  test.each([
    ['what is no cursor', '{"cursor":"x"}'],
    ['a place in what is no cursor', '{"cursor":"x~t-1"}'],
    ['a cursor without an end', `{"cursor":"${'1'.repeat(600)}"}`],
    ['what is no object', '[]'],
  ])('cannot begin at %s', async (_, body) => {
    await using _door = await taskDoor(nats, many);
    expect((await request('troupe.task.list', body)).code).toBe(400);
  });
});
