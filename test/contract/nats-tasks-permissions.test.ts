// What docs/SUBJECTS.md says that each needs to use tasks is enough for that, and for nothing more.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type NatsConnection, RequestStrategy } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { subjects } from '../../src/bus/subjects.ts';
import { createResponder } from '../../src/doors/nats/responder.ts';
import { serveTasks } from '../../src/doors/nats/tasks.ts';
import type { Tasks } from '../../src/tasks/task.ts';
import { headersOf, kindOf } from '../support/ask.ts';
import { eventually } from '../support/eventually.ts';
import { littleTasks, taskView } from '../support/little-tasks.ts';
import { freePort, natsBinary } from '../support/nats.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

const PERMISSIONS = {
  daemon: {
    subscribe: [
      ...['troupe.task.>', 'troupe.as.*.task.>', 'troupe.node.host.task.>', 'troupe.peers.>'],
      ...['troupe.ev.>', 'troupe.as.*.ev.>', '_INBOX.>'],
    ],
    publish: [
      ...['troupe.ev.>', 'troupe.as.*.ev.>', 'troupe.peers.>', '_INBOX.>', '_INBOX_alice.>'],
      ...['troupe.task.get.*', 'troupe.as.*.task.get.*', 'troupe.node.*.task.get.*'],
    ],
  },
  alice: {
    subscribe: ['_INBOX_alice.>', 'troupe.as.alice.ev.task.*.*', 'troupe.as.alice.ev.progress.*'],
    publish: ['troupe.as.alice.call.gh.>', 'troupe.as.alice.task.>'],
  },
  looker: {
    subscribe: ['_INBOX_alice.>'],
    publish: ['troupe.as.alice.task.get.*', 'troupe.as.alice.task.list'],
  },
};

const subject = subjects('troupe');
const connections: NatsConnection[] = [];
const troubles: string[] = [];
let directory: Scratch;
let url: string;
let stop: () => Promise<void>;

async function as(user: string, inboxPrefix = '_INBOX'): Promise<NatsConnection> {
  const nc = await connect({ servers: url, user, pass: user, noAsyncTraces: true, inboxPrefix });
  connections.push(nc);
  return nc;
}

beforeAll(async () => {
  directory = await scratch();
  url = `127.0.0.1:${await freePort()}`;
  const users = Object.entries(PERMISSIONS).map(([user, permissions]) => ({ user, password: user, permissions }));
  const file = join(directory.path, 'nats.conf');
  await writeFile(file, JSON.stringify({ listen: url, authorization: { users } }));
  const child = spawn((await natsBinary()).path, ['-c', file], { stdio: 'ignore' });
  stop = async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  await eventually(() => as('daemon'));
});
afterAll(async () => {
  await Promise.all(connections.map((each) => each.close()));
  await stop();
  await directory[Symbol.asyncDispose]();
});

async function door(family: string, views: Parameters<typeof littleTasks>[0]) {
  const nc = await as('daemon');
  const little = littleTasks(views);
  const open = createResponder({ nc, onTrouble: (why) => void troubles.push(String(why)) });
  const ports = { tasks: little.tasks as Tasks, inbox: { list: () => [] } };
  serveTasks(open, { subjects: subject, daemon: 'host', family, ports });
  await nc.flush();
  return Object.assign(little, { nc, [Symbol.asyncDispose]: () => open.close() });
}

test('a caller does with its own tasks whatever there is to do, hears of them, and reaches no other', async () => {
  await using it = await door(
    'f1',
    ['one', 'two'].map((id) => taskView(id, { principal: 'alice' })),
  );
  await using _ = await door('f2', []); // which asks on the bus before it says that there is none
  const alice = await as('alice', '_INBOX_alice');
  const get = (path: string) => alice.request(`troupe.as.alice.task.${path}`, '', { timeout: 10_000 });
  expect((await get('get.one')).json()).toMatchObject({ taskId: 'one' });
  expect((await get('cancel.two')).json()).toMatchObject({ status: 'cancelled' });
  const heard: string[] = [];
  for (const pattern of ['ev.task.*.*', 'ev.progress.*'])
    alice.subscribe(`troupe.as.alice.${pattern}`, { callback: (_, msg) => void heard.push(msg.subject) });
  await alice.flush();

  const frames: string[] = [];
  const stream = {
    strategy: RequestStrategy.SentinelMsg,
    maxWait: 30_000,
    headers: headersOf({ 'Troupe-Stream': '1' }),
  };
  const reading = alice.requestMany('troupe.as.alice.task.result.one', '', stream).then(async (messages) => {
    for await (const each of messages) frames.push(each instanceof Error ? String(each) : kindOf(each));
  });
  await eventually(() => it.waiters('one') === 1);
  await it.nc.flush(); // it listens
  it.nc.publish(subject.progress('one', 'alice'), '{"progress":1}');
  it.nc.publish(subject.taskStatus('one', 'completed', 'alice'), '{}');
  await eventually(() => expect(frames).toEqual(['ack', 'progress']));
  it.end('one', { ok: true, result: Buffer.from('{}'), isError: false });
  await reading;
  expect(frames).toEqual(['ack', 'progress', 'result', 'end']);
  await eventually(() =>
    expect(heard).toEqual(['troupe.as.alice.ev.progress.one', 'troupe.as.alice.ev.task.one.completed']),
  );

  for (const forbidden of ['troupe.task.list', 'troupe.as.bob.task.get.one', 'troupe.node.host.task.list'])
    await expect(alice.request(forbidden, '', { timeout: 10_000 })).rejects.toThrow(/permission/i);
  const refused: unknown[] = [];
  for (const pattern of ['troupe.ev.task.*.*', 'troupe.as.bob.ev.task.*.*', 'troupe.as.*.ev.progress.*'])
    alice.subscribe(pattern, { callback: (error) => void (error && refused.push(error)) });
  await eventually(() => expect(refused).toHaveLength(3));
  expect(troubles).toEqual([]);
});

test('who may only look can neither fetch nor end', async () => {
  await using it = await door('f1', [taskView('one', { principal: 'alice' })]);
  const looker = await as('looker', '_INBOX_alice');
  const ask = (path: string) => looker.request(`troupe.as.alice.task.${path}`, '', { timeout: 10_000 });
  expect((await ask('list')).json()).toMatchObject([{ taskId: 'one' }]);
  expect((await ask('get.one')).json()).toMatchObject({ status: 'working' });
  for (const path of ['result.one', 'cancel.one']) await expect(ask(path)).rejects.toThrow(/permission/i);
  expect([it.known.get('one')?.status, troubles]).toEqual(['working', []]);
});
