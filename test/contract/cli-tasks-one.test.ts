// `troupe task get|result|wait|cancel` against the control socket: which task is meant, what is printed, and every exit code.

import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Answers, idOf, refusal, taskDaemon, taskOf } from '../support/task-daemon.ts';

const ID = idOf('ab12cd34');
const TASK = taskOf('ab12cd34', { progress: { progress: 1, total: 4, message: 'step\n1\x1b[2J' }, attempt: 2 });
const ended = { status: 'completed', phase: 'ended' } as const;
const text = (words: string, more = ''): string => `{"content":[{"type":"text","text":"${words}"}]${more}}`;
const results = (result: string): Answers => ({ taskResult: () => ({ result }) });

test('get shows what is known of it, without anything that drives a terminal', async () => {
  await using daemon = await taskDaemon([taskOf('ff'), { ...TASK, principal: 'alice', statusMessage: 'busy\x07' }]);
  const { code, stdout, stderr } = await daemon.run('task', 'get', 'AB12');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.trimEnd().split('\n')).toEqual([
    `id       ${ID}`,
    'call     add of demo',
    'for      alice',
    'status   working  sent 2 times',
    'message  busy\\u0007',
    `progress ${'█'.repeat(6)}${'░'.repeat(18)} 25 % step 1\\u001b[2J`,
    expect.stringMatching(/^created {2}20\S+Z, 1m ago$/),
    expect.stringMatching(/^updated {2}20\S+Z, \S+ ago$/),
    'kept     for 1d from its creation',
  ]);
  const json = await daemon.run('task', 'get', ID, '--json');
  expect([json.code, JSON.parse(json.stdout)]).toEqual([0, { ...TASK, principal: 'alice', statusMessage: 'busy\x07' }]);
});

test('a task that waits for input says how to answer: which question, or where to look', async () => {
  const asks = [
    { id: 'cd34ef56-0000-4000-8000-000000000000', task: ID, kind: 'elicitation' },
    { id: 'ee34ef56-0000-4000-8000-000000000000', task: idOf('ff'), kind: 'elicitation' },
  ];
  let open: object[] = asks;
  await using daemon = await taskDaemon([{ ...TASK, status: 'input_required' }], {
    inbox: () => ({ result: JSON.stringify({ version: 1, asks: open }) }),
  });
  expect((await daemon.run('task', 'get', 'ab12')).stdout).toMatch(/^answer {3}troupe answer cd34ef56$/m);
  open = [];
  expect((await daemon.run('task', 'get', 'ab12')).stdout).toMatch(/^answer {3}see `troupe inbox`$/m);
});

test('result prints exactly what the call would have printed', async () => {
  const result = '{"z":9007199254740993, "content":[{"type":"text","text":"hi"}]}';
  await using daemon = await taskDaemon([TASK], results(result));
  expect(await daemon.run('task', 'result', 'ab12')).toEqual({ code: 0, stdout: 'hi\n', stderr: '' });
  expect((await daemon.run('task', 'result', ID, '--json')).stdout).toBe(`${result}\n`);
  expect(daemon.askedFor('taskResult')).toEqual([{ id: ID }, { id: ID }]);
});

test("a tool's error ends result and wait with 5", async () => {
  await using daemon = await taskDaemon(
    [{ ...TASK, status: 'failed', phase: 'ended' }],
    results(text('no such file', ',"isError":true')),
  );
  expect(await daemon.run('task', 'result', 'ab12')).toEqual({
    ...{ code: 5, stdout: 'no such file\n', stderr: 'add of demo answered with an error\n' },
  });
  expect(await daemon.run('task', 'wait', 'ab12')).toEqual({ code: 5, stdout: 'failed\n', stderr: '' });
});

test.each([
  ['unavailable', 'failed', 4],
  ['lost', 'failed', 1],
  ['cancelled', 'cancelled', 1],
  ['invalid', 'failed', 2],
] as const)('a failure %s ends result as the call would have, and wait with 1', async (failure, status, code) => {
  await using daemon = await taskDaemon([{ ...TASK, status, phase: 'ended' }], {
    taskResult: () => refusal(failure, 'demo went away', { delivery: 'outcome unknown', server: 'demo' }),
  });
  const said = 'troupe: demo went away\n';
  expect(await daemon.run('task', 'result', 'ab12')).toEqual({ code, stdout: '', stderr: said });
  const { stderr } = await daemon.run('task', 'result', 'ab12', '--json');
  expect(JSON.parse(stderr).error).toMatchObject({ code: failure, delivery: 'outcome unknown', server: 'demo' });
  expect(await daemon.run('task', 'wait', 'ab12')).toEqual({
    code: 1,
    stdout: `${status}\n`,
    stderr: 'demo went away\n',
  });
});

test('a daemon that stops while one waits says so, and the task is none the worse', async () => {
  const sentence = 'troupe stops; the task goes on';
  await using daemon = await taskDaemon([TASK], { taskResult: () => refusal('unavailable', sentence) });
  for (const verb of ['wait', 'result'])
    expect(await daemon.run('task', verb, 'ab12')).toEqual({ code: 4, stdout: '', stderr: `troupe: ${sentence}\n` });
});

test("a server's own error is told as its own", async () => {
  await using daemon = await taskDaemon([TASK], {
    taskResult: () => ({ error: { code: -32_099, message: 'full', data: { x: 1 } } }),
  });
  const { stderr } = await daemon.run('task', 'result', 'ab12', '--json');
  expect(JSON.parse(stderr).error).toMatchObject({ code: 'rejected', rpc: { code: -32_099, data: { x: 1 } } });
});

test('wait says how it ended, and once what it waits for meanwhile', async () => {
  let finish = (): void => {};
  const ask = { id: 'cd34ef56-0000-4000-8000-000000000000', task: ID, kind: 'elicitation' };
  await using daemon = await taskDaemon([TASK], {
    taskResult: (_, { id }) => {
      finish = () => daemon.send(`{"jsonrpc":"2.0","id":${id},"result":${text('hi')}}\n`);
      return undefined;
    },
    inbox: () => ({ result: JSON.stringify({ version: 1, asks: [ask] }) }),
  });
  const { child, done } = daemon.start('task', 'wait', 'ab12');
  let heard = '';
  child.stderr?.on('data', (words) => (heard += words));
  daemon.change([{ ...TASK, status: 'input_required' }]);
  const said = 'demo asks a question; answer it with: troupe answer cd34ef56\n';
  await eventually(() => expect(heard).toBe(said), 15_000);
  daemon.change([{ ...TASK, status: 'input_required', lastUpdatedAt: 'later' }]);
  await eventually(() => expect(daemon.askedFor('inbox').length).toBeGreaterThan(1), 15_000);
  daemon.change([{ ...TASK, ...ended }]);
  finish();
  expect(await done).toEqual({ code: 0, stdout: 'completed\n', stderr: said });
});

test.each(['result', 'wait'])('Ctrl-C leaves the task of %s running, and says so', async (verb) => {
  await using daemon = await taskDaemon([TASK]);
  const { child, done } = daemon.start('task', verb, 'ab12');
  await eventually(() => expect(daemon.askedFor('taskResult')).toHaveLength(1), 15_000);
  child.kill('SIGINT');
  const said = `\nthe task goes on; \`troupe task ${verb} ab12cd34\` waits for it again\n`;
  expect(await done).toEqual({ code: 130, stdout: '', stderr: said });
  expect(daemon.askedFor('taskCancel')).toEqual([]);
});

test('--timeout stops the waiting and not the task; a daemon that goes away has kept it', async () => {
  await using daemon = await taskDaemon([TASK]);
  const late = await daemon.run('task', 'wait', 'ab12', '--timeout', '300ms');
  const said = 'troupe: not done after 300ms; it goes on: `troupe task wait ab12cd34`\n';
  expect(late).toEqual({ code: 1, stdout: '', stderr: said });
  const { done } = daemon.start('task', 'result', 'ab12');
  await eventually(() => expect(daemon.askedFor('taskResult')).toHaveLength(2), 15_000);
  daemon.hangUp();
  expect(await done).toMatchObject({ code: 4, stderr: expect.stringContaining('the task is kept') });
});

test.each([
  ['queued', 'it had not been sent'],
  ['dispatching', 'demo is told to stop'],
] as const)('cancel of one that is %s says what that means', async (phase, fate) => {
  const cancelled = { ...TASK, status: 'cancelled', phase: 'ended' };
  await using daemon = await taskDaemon([{ ...TASK, phase }], {
    taskCancel: () => ({ result: JSON.stringify(cancelled) }),
  });
  expect(await daemon.run('task', 'cancel', 'ab12')).toEqual({
    ...{ code: 0, stdout: `cancelled add of demo; ${fate}\n`, stderr: '' },
  });
  expect(JSON.parse((await daemon.run('task', 'cancel', 'ab12', '--json')).stdout)).toEqual(cancelled);
  expect(daemon.askedFor('taskCancel')).toEqual([{ id: ID }, { id: ID }]);
});

test('one that had ended cannot be cancelled: one sentence and 1', async () => {
  await using daemon = await taskDaemon([{ ...TASK, ...ended }], {
    taskCancel: () => refusal('ended', 'task ab12cd34 has ended: completed'),
  });
  expect(await daemon.run('task', 'cancel', 'ab12')).toEqual({
    ...{ code: 1, stdout: '', stderr: 'troupe: task ab12cd34 has ended: completed\n' },
  });
});

test.each([
  [['get', 'ab1'], 2, "'ab1' is too short for an id; at least 4 characters tell which"],
  [['get', 'ab12'], 2, '2 tasks begin with ab12; write more of the id'],
  [['get', 'cd12'], 1, 'no task begins with cd12; `troupe tasks` lists them'],
  [['cancel', idOf('cd')], 1, `there is no task ${idOf('cd')}`],
  [['list', 'ab12'], 2, "task knows get, result, wait, cancel, not 'list'"],
  [['get', 'ab12', '--timeout', '1s'], 2, '--timeout goes with task wait and result'],
  [['wait', 'ab12', '--timeout', 'x'], 2, "--timeout wants a time like 500ms, 30s, 2m, 1h or 7d, not 'x'"],
])('task %j ends with %d and one sentence', async (words, code, sentence) => {
  await using daemon = await taskDaemon([taskOf('ab1299'), taskOf('ff'), TASK], {}, 1);
  expect(await daemon.run('task', ...words)).toEqual({ code, stdout: '', stderr: `troupe: ${sentence}\n` });
});
