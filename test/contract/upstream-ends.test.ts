// How a followed call ends early: cancelled or out of time it is cancelled at the server as the task that it is. And what
// becomes of tasks that are none: no lie of a server hangs a call, crosses two callers, or is taken for a result.

import { expect, it } from 'vitest';
import { said } from '../support/remote.ts';
import { boardCast, deferred, soon, text } from '../support/task-board.ts';

const CANCELLABLE = { isCancellable: true, requestId: 'mine' };
type Stage = Awaited<ReturnType<typeof boardCast>>;
const cancel = (s: Stage) => s.far.fleet.cancel('_', 'mine', 'enough');
const isFetched = (s: Stage, count = 1) => soon(() => expect(s.sent('tasks/result')).toHaveLength(count));

it('cancels the task at the server when the caller cancels, and asks after it no more', async () => {
  const dropped: string[] = [];
  await using s = await boardCast({
    methods: {
      'tasks/result': ({ taskId }, _, response) => void response.on('close', () => dropped.push(taskId)),
    },
  });
  const outcome = s.far.call('do', {}, CANCELLABLE);
  const task = await s.task();
  await isFetched(s);
  cancel(s);
  expect(said(await outcome)).toBe('cancelled, outcome unknown');
  await soon(() => expect([task.status, dropped]).toEqual(['cancelled', ['task-1']]));
  expect(s.sent('tasks/cancel')).toEqual([{ taskId: 'task-1' }]);
  const about = s.sent('notifications/cancelled').map(({ requestId }) => requestId);
  const calls = s.handle.of('tools/call').map(({ raw }) => JSON.parse(raw).id);
  expect(calls.filter((id) => about.includes(id))).toEqual([]); // of the call itself it hears nothing else
  const asked = s.sent('tasks/get').length;
  expect(said(await s.far.call('no'))).toBe('plain');
  s.handle.tell(task);
  expect(said(await s.far.call('no'))).toBe('plain');
  expect([s.sent('tasks/get').length, s.sent('tasks/cancel').length]).toEqual([asked, 1]);
  expect(s.far.log.filter((line) => /dropped/.test(line))).toEqual([]);
});

it('cancels it when the time of the call is over, also where the server never gives the result', async () => {
  await using s = await boardCast({ methods: { 'tasks/result': () => undefined } });
  const outcome = s.far.call('do', {}, { timeoutMs: 1_500 });
  (await s.task()).status = 'completed';
  expect(said(await outcome)).toBe('timeout, outcome unknown');
  await soon(() => expect(s.sent('tasks/cancel')).toEqual([{ taskId: 'task-1' }]));
});

it('lets a task run on for nobody at a server that cannot cancel one', async () => {
  await using s = await boardCast({ capabilities: { tasks: { requests: { tools: { call: {} } } } } });
  const outcome = s.far.call('do', {}, CANCELLABLE);
  await s.task();
  await isFetched(s);
  cancel(s);
  expect(said(await outcome)).toBe('cancelled, outcome unknown');
  expect(said(await s.far.call('no'))).toBe('plain');
  expect(s.sent('tasks/cancel')).toEqual([]);
});

it('cancels the task of a call that was given up before the server had made it one', async () => {
  const made = deferred<void>();
  await using s = await boardCast({
    methods: {
      'tools/call': async ({ name }) => {
        if (name !== 'do') return text('plain');
        await made.promise;
        return { task: s.handle.views(s.handle.begin()) };
      },
    },
  });
  const outcome = s.far.call('do', {}, CANCELLABLE);
  await soon(() => expect(s.sent('tools/call')).toHaveLength(1));
  cancel(s);
  expect(said(await outcome)).toBe('cancelled, outcome unknown');
  expect(s.sent('tasks/cancel')).toEqual([]);
  made.resolve();
  await soon(() => expect(s.sent('tasks/cancel')).toEqual([{ taskId: 'task-1' }]));
  expect(s.sent('tasks/result')).toEqual([]);
});

const LIES: [string, object][] = [
  ['an id that is no text', { taskId: 7, status: 'working' }],
  ['an empty id', { taskId: '', status: 'working' }],
  ['an id without end', { taskId: 'x'.repeat(1_025), status: 'working' }],
  ['a status that there is not', { taskId: 't', status: 'sleeping' }],
  ['no status', { taskId: 't' }],
];

it.each(LIES)('fails the call when its task has %s', async (_, task) => {
  await using s = await boardCast({ methods: { 'tools/call': () => ({ task }) } });
  const outcome = await s.far.call('do');
  expect(outcome).toMatchObject({
    failure: { code: 'lost', message: expect.stringMatching(/server far made the call/) },
  });
  expect(s.sent('tasks/result')).toEqual([]);
});

it('gives no call the task that another call already has', async () => {
  await using s = await boardCast({
    methods: { 'tools/call': () => ({ task: s.handle.views(s.handle.tasks[0] ?? s.handle.begin()) }) },
  });
  const ann = s.far.call('do', {}, { principal: 'ann' });
  await isFetched(s);
  expect(said(await s.far.call('do', {}, { principal: 'ann' }))).toBe('lost, outcome unknown');
  s.handle.tasks[0]?.end({ result: text('for ann') });
  expect(said(await ann)).toBe('for ann');
});

it('hears a second answer to a call that has become a task as one to nobody', async () => {
  await using s = await boardCast();
  const outcome = s.far.call('do');
  const task = await s.task();
  await isFetched(s);
  const { id } = JSON.parse(s.handle.of('tools/call')[0]?.raw ?? '');
  await soon(() => expect(s.handle.standing.size).toBe(1));
  s.handle.say({ id, result: text('a lie') });
  await soon(() => expect(s.far.log.join()).toMatch(/dropped an answer to nobody/));
  task.end({ result: text('the truth') });
  expect(said(await outcome)).toBe('the truth');
});

it('drops the status of a task that nobody follows, and asks after no task by another’s words', async () => {
  await using s = await boardCast();
  const outcome = s.far.call('do');
  const task = await s.task();
  await isFetched(s);
  await soon(() => expect(s.handle.standing.size).toBe(1));
  const params = { taskId: 'stranger', status: 'completed' };
  s.handle.say({ method: 'notifications/tasks/status', params });
  s.handle.say({ method: 'notifications/tasks/status', params: { taskId: task.taskId, status: 'asleep' } });
  await soon(() => expect(s.far.log.filter((line) => /dropped the status of no task/.test(line))).toHaveLength(2));
  task.end({ result: text('done') });
  expect(said(await outcome)).toBe('done');
});

it('gives up a result that is too large, and one that cannot be had of a task that has ended', async () => {
  await using s = await boardCast(
    {
      methods: {
        'tasks/result': ({ taskId }, _, response) =>
          taskId === 'task-1' ? text('x'.repeat(20_000)) : void response.writeHead(418).end(),
      },
    },
    { settings: { maxFrameBytes: 10_000 } },
  );
  expect(said(await s.far.call('do'))).toBe('tooLarge, outcome unknown');
  const outcome = s.far.call('do');
  (await s.task(1)).status = 'completed';
  expect(said(await outcome)).toBe('rejected, outcome unknown');
  expect(s.sent('tasks/result').length).toBeLessThan(15);
});
