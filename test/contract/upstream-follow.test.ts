// How a server's own task is followed: asked after at its pace, heard at once, its result fetched as it is; through lost
// answers, lost sessions and an earlier life. Nothing that the server says is trusted.

import { expect, it } from 'vitest';
import type { UpstreamTask } from '../../src/calls/call.ts';
import { said } from '../support/remote.ts';
import { boardCast, DONE, deferred, refuse, soon, text } from '../support/task-board.ts';

function watched() {
  const seen: UpstreamTask[] = [];
  return { seen, onUpstream: (task: UpstreamTask) => void seen.push(task) };
}

it('tells of the task at once and of each change, whether it asks or is told', async () => {
  await using s = await boardCast();
  const { seen, onUpstream } = watched();
  const outcome = s.far.call('do', {}, { onUpstream });
  const task = await s.task();
  await soon(() => expect(seen).toEqual([{ taskId: 'task-1', status: 'working' }]));
  Object.assign(task, { statusMessage: 'half\u001b[31m done', pollInterval: 1e9 });
  await soon(() => expect(seen.at(-1)?.statusMessage).toBe('half\ufffd[31m done'));
  const polled = s.sent('tasks/get').length;
  await soon(() => expect(s.sent('tasks/get').length).toBeGreaterThan(polled)); // from here on it is asked once a minute
  await soon(() => expect(s.handle.standing.size).toBe(1));
  s.handle.tell(Object.assign(task, { status: 'input_required', statusMessage: 'x'.repeat(5_000) }));
  await soon(() => expect(seen.at(-1)).toMatchObject({ status: 'input_required' }));
  expect(seen.at(-1)?.statusMessage).toHaveLength(1_024);
  task.end(DONE);
  expect(said(await outcome)).toBe('done');
  const [count, asked] = [seen.length, s.sent('tasks/get').length];
  s.handle.tell(task, { status: 'working' });
  expect(said(await s.far.call('no'))).toBe('plain');
  expect([seen.length, s.sent('tasks/get').length]).toEqual([count, asked]); // nobody follows it any more
});

it('believes no task that it has ended and works again, and does not ask after one that has ended', async () => {
  const released = deferred<object>();
  await using s = await boardCast({ methods: { 'tasks/result': () => released.promise } });
  const [one, other] = [watched(), watched()];
  const outcome = s.far.call('do', {}, one);
  const task = await s.task(0);
  void s.far.call('do', {}, other);
  const neighbour = await s.task(1);
  task.status = 'completed';
  await soon(() => expect([one.seen.at(-1)?.status, s.handle.standing.size]).toEqual(['completed', 1]));
  const asked = () => s.sent('tasks/get').filter(({ taskId }) => taskId === task.taskId).length;
  const before = asked();
  s.handle.tell(task, { status: 'working' });
  s.handle.tell(Object.assign(neighbour, { statusMessage: 'heard after it' }));
  await soon(() => expect(other.seen.at(-1)?.statusMessage).toBe('heard after it'));
  const polls = s.sent('tasks/get').length;
  await soon(() => expect(s.sent('tasks/get').length).toBeGreaterThan(polls + 3)); // of the neighbour
  expect([one.seen.at(-1)?.status, asked()]).toEqual(['completed', before]);
  released.resolve(text('after all'));
  expect(said(await outcome)).toBe('after all');
});

it('is not kept busy by a status that flickers, and ends with the call all the same', async () => {
  await using s = await boardCast();
  const { seen, onUpstream } = watched();
  const outcome = s.far.call('do', {}, { onUpstream });
  const task = await s.task();
  await soon(() => expect([s.handle.standing.size, seen.length]).toEqual([1, 1]));
  const begunAt = performance.now();
  for (let n = 0; n < 5_000; n++) s.handle.tell(task, { status: n % 2 ? 'working' : 'input_required' });
  s.handle.tell(Object.assign(task, { statusMessage: 'that was all' }));
  await soon(() => expect(seen.at(-1)).toMatchObject({ status: 'working', statusMessage: 'that was all' }));
  expect(seen.length).toBeLessThan(10 + (performance.now() - begunAt) / 100);
  task.end(DONE);
  expect(said(await outcome)).toBe('done');
});

it('has one request for the result open, and asks again when that was lost and the task has ended or wants something', async () => {
  let attempts = 0;
  await using s = await boardCast({
    methods: {
      'tasks/result': (_, __, response) => {
        if (++attempts < 3) return void response.destroy();
        return text(`at attempt ${attempts}`);
      },
    },
  });
  const outcome = s.far.call('do');
  const task = await s.task();
  const asked = s.sent('tasks/get').length;
  await soon(() => expect(s.sent('tasks/get').length).toBeGreaterThan(asked + 3));
  expect(attempts).toBe(1);
  task.status = 'input_required';
  await soon(() => expect(attempts).toBe(2));
  task.status = 'completed';
  expect(said(await outcome)).toBe('at attempt 3');
});

it('takes an error for the outcome only once the task has ended, and then as it is', async () => {
  let attempts = 0;
  await using s = await boardCast({
    methods: {
      'tasks/result': ({ taskId }) => {
        attempts++;
        const task = s.handle.tasks.find((each) => each.taskId === taskId);
        throw task?.status === 'working' ? refuse(-32603, 'not yet') : refuse(-32099, 'out of paper');
      },
    },
  });
  const outcome = s.far.call('do');
  const task = await s.task();
  await soon(() => expect(s.sent('tasks/get').length).toBeGreaterThan(2));
  expect(attempts).toBe(1);
  task.status = 'failed';
  const { failure } = (await outcome) as any;
  expect(failure).toMatchObject({ code: 'rejected', delivery: 'failed' });
  expect(failure.error.toString()).toBe('{"code":-32099,"message":"out of paper"}');
});

it('knows the error of a call from the word that there is no such task', async () => {
  await using s = await boardCast();
  const outcome = s.far.call('do');
  (await s.task()).end({ error: { code: -32602, message: 'bad arguments' } });
  expect(said(await outcome)).toBe('error bad arguments');
  const forgotten = s.far.call('do');
  const gone = await s.task(1);
  await soon(() => expect(s.sent('tasks/result').map(({ taskId }) => taskId)).toContain(gone.taskId));
  s.handle.tasks.length = 1;
  expect(await forgotten).toMatchObject({
    ok: false,
    failure: {
      code: 'lost',
      delivery: 'outcome unknown',
      message: expect.stringMatching(/far no longer knows the task/),
    },
  });
});

it('follows a task of an earlier life by its id and sends nothing again, also of a tool that there is no more', async () => {
  await using s = await boardCast({}, { settings: { trust: true } });
  const { seen, onUpstream } = watched();
  const task = s.handle.begin('of-before');
  task.status = 'input_required';
  const outcome = s.far.call('gone', {}, { upstream: 'of-before', onUpstream });
  await soon(() => expect(seen).toEqual([{ taskId: 'of-before', status: 'input_required' }]));
  task.end(DONE);
  expect(said(await outcome)).toBe('done');
  expect(s.handle.of('tools/call')).toEqual([]);
});

it('says that the outcome is unknown when the server does not know a task of an earlier life', async () => {
  await using s = await boardCast();
  const outcome = await s.far.call('do', {}, { upstream: 'never' });
  expect(outcome).toMatchObject({ failure: { code: 'lost', delivery: 'outcome unknown', server: 'far' } });
  expect(s.handle.of('tools/call')).toEqual([]);
});

it('goes on in a new session when the server has forgotten the old one, and ends when that knows the task no more', async () => {
  let session = 'first';
  const isOld = (request: any) => request.headers['mcp-session-id'] !== session;
  await using s = await boardCast({ session: () => session, isGone: isOld });
  const kept = s.far.call('do');
  const task = await s.task();
  session = 'second';
  await soon(() => expect(s.handle.of('initialize')).toHaveLength(2));
  await soon(() => {
    const ids = s.handle.of('tasks/get').map(({ headers }) => headers['mcp-session-id']);
    expect(ids).toContain('second');
  });
  task.end(DONE);
  expect(said(await kept)).toBe('done');
  expect(s.handle.of('tools/call')).toHaveLength(1);
  const lost = s.far.call('do');
  await s.task(1);
  session = 'third';
  s.handle.tasks.length = 0;
  expect(said(await lost)).toBe('lost, outcome unknown');
});
