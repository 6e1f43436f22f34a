// Tasks from the command line with everything real behind it: a daemon, its servers, its database.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { screenOf } from '../support/screen.ts';
import { terminal } from '../support/terminal.ts';

let d: Daemon;
const PATIENT = 30_000;

beforeAll(async () => {
  const trusted = { trust: true, drainMs: '100ms' };
  d = await daemon({
    servers: {
      echo: fixture('echo', trusted),
      slow: fixture('hangs', trusted),
      steps: fixture('progress', trusted),
      dies: fixture('dies-in-call', trusted),
      asks: fixture('inquires', trusted),
    },
  });
}, 60_000);
afterAll(() => d[Symbol.asyncDispose]());

const make = async (...words: string[]): Promise<string> => {
  const { stdout, stderr, exitCode } = await d.cli('call', ...words, '--task');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringMatching(/^`troupe task get \w{8}`/) });
  return stdout;
};

test('a call that is made a task gives its result later, with every digit, as often as it is asked for', async () => {
  const id = await make('echo', 'raw', '--args', '{"n":9007199254740993}', '--ttl', '1h');
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  const text = '{"n":9007199254740993}';
  expect(await d.cli('task', 'result', id.slice(0, 8))).toMatchObject({ exitCode: 0, stdout: text, stderr: '' });
  expect(await d.cli('task', 'wait', id)).toMatchObject({ exitCode: 0, stdout: 'completed', stderr: '' });
  expect((await d.cli('task', 'result', id, '--json')).stdout).toContain(`"structuredContent":${text}`);
  const view = JSON.parse((await d.cli('task', 'get', id, '--json')).stdout);
  expect(view).toMatchObject({
    taskId: id,
    status: 'completed',
    ttl: 3_600_000,
    server: 'echo',
    tool: 'raw',
    attempt: 1,
  });
});

test('the same key is the same task, and the same key for something else is refused', async () => {
  const first = await make('echo', 'raw', '--key', 'once');
  expect((await d.cli('task', 'wait', first)).stdout).toBe('completed');
  expect(await d.cli('call', 'echo', 'raw', '--task', '--key', 'once')).toMatchObject({
    ...{
      exitCode: 0,
      stdout: first,
      stderr: expect.stringMatching(/^this key has a task already, which is completed: /),
    },
  });
  const other = await d.cli('call', 'echo', 'raw', 'a=1', '--task', '--key', 'once');
  expect(other).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringMatching(/^troupe: .*key/) });
});

test('one that runs is cancelled once; its server is told, and its result is a failure with 1', async () => {
  const id = await make('slow', 'sleep', 'ms=600000');
  expect(await d.cli('task', 'cancel', id.slice(0, 6))).toMatchObject({
    ...{ exitCode: 0, stdout: 'cancelled sleep of slow; slow is told to stop' },
  });
  expect(await d.cli('task', 'cancel', id)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^troupe: .*ended/),
  });
  expect(await d.cli('task', 'wait', id)).toMatchObject({ exitCode: 1, stdout: 'cancelled' });
  expect(await d.cli('task', 'result', id)).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(/cancel/),
  });
  await eventually(async () => {
    const { stdout } = await d.cli('call', 'slow', 'cancelled');
    expect(JSON.parse(stdout)).toHaveLength(1);
  }, PATIENT);
});

test('a server that dies in it leaves the outcome unknown, and says so', async () => {
  const id = await make('dies', 'die');
  const { exitCode, stderr } = await d.cli('task', 'result', id, '--json');
  expect([exitCode, JSON.parse(stderr).error]).toEqual([
    1,
    expect.objectContaining({ code: 'lost', delivery: 'outcome unknown' }),
  ]);
  expect(await d.cli('task', 'wait', id)).toMatchObject({ exitCode: 1, stdout: 'failed' });
});

const at = (...words: string[]) => terminal([process.execPath, MAIN, ...words], { env: d.env, rows: 20 });

test('its progress is drawn for whoever waits; Ctrl-C leaves it running', async () => {
  const id = await make('steps', 'steps', 'count=100000', 'ms=20');
  await using screen = at('task', 'wait', id);
  await eventually(() => expect(screen.raw()).toMatch(/░ +0 % step \d+/), PATIENT);
  screen.type('\x03');
  await screen.sees(`the task goes on; \`troupe task wait ${id.slice(0, 8)}\` waits for it again`);
  expect(await screen.code).toBe(130);
  expect(JSON.parse((await d.cli('task', 'get', id, '--json')).stdout)).toMatchObject({ status: 'working' });
  const late = await d.cli('task', 'wait', id, '--timeout', '100ms');
  expect(late).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringContaining('not done after 100ms; it goes on'),
  });
  expect((await d.cli('task', 'cancel', id)).exitCode).toBe(0);
});

test('tasks -f shows what is made, how far it is and how it ends, in 80 columns', async () => {
  await using screen = at('tasks', '-f');
  const seen = () => screenOf(screen.raw(), 80, 20);
  const id = await make('steps', 'steps', 'count=100000', 'ms=20');
  const short = id.slice(0, 8);
  const row = (words: RegExp) => () =>
    expect(seen().lines.filter((line) => line.startsWith(short))).toEqual([expect.stringMatching(words)]);
  await eventually(row(/ steps +steps +working +\d+\w+ +░{8} 0 % step/), PATIENT);
  await d.cli('task', 'cancel', id);
  await eventually(row(/ cancelled .*the task was/), PATIENT);
  screen.type('\x03');
  expect(await screen.code).toBe(0);
  expect(seen()).toMatchObject({ isCursorShown: true, wraps: 0 });
});

test('one that needs an answer says which, and goes on when it is given', async () => {
  const params = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };
  const args = JSON.stringify({ method: 'elicitation/create', params });
  const id = await make('asks', 'inquire', '--args', args);
  const command = await eventually(async () => {
    const { stdout } = await d.cli('task', 'get', id);
    expect(stdout).toMatch(/^status +input_required$/m);
    return /^answer +troupe (answer \w{8})$/m.exec(stdout)?.[1]?.split(' ') ?? false;
  }, PATIENT);
  expect((await d.cli('tasks')).stdout).toMatch(/ input_required .* needs an answer/);
  expect((await d.cli(...(command as string[]), '--accept', '{"name":"Ada"}')).exitCode).toBe(0);
  expect((await d.cli('task', 'result', id)).stdout).toContain('"content":{"name":"Ada"}');
});

test('what has ended is kept over a crash, until it is pruned', async () => {
  const kept = await make('echo', 'raw', 'a=1');
  expect((await d.cli('task', 'wait', kept)).stdout).toBe('completed');
  await d.kill();
  await d.start();
  expect((await d.cli('task', 'result', kept)).stdout).toBe('{"a":1}');
  const running = await make('slow', 'sleep', 'ms=600000');
  expect((await d.cli('tasks', 'prune', '--older', '1d')).stdout).toBe('0 tasks removed');
  const all = JSON.parse((await d.cli('tasks', '--json')).stdout);
  expect((await d.cli('tasks', 'prune')).stdout).toBe(`${all.length - 1} tasks removed`);
  const left = JSON.parse((await d.cli('tasks', '--json')).stdout);
  expect(left.map(({ taskId }: { taskId: string }) => taskId)).toEqual([running]);
  expect(await d.cli('task', 'get', kept)).toMatchObject({ exitCode: 1, stdout: '' });
  expect((await d.cli('task', 'cancel', running)).exitCode).toBe(0);
});

test('a daemon that stops sends away who waits, and says that the task goes on', async () => {
  const id = await make('steps', 'steps', 'count=100000', 'ms=20');
  expect((await d.cli('status')).stdout).toMatch(/^tasks +1 unfinished; see `troupe tasks`$/m);
  await using screen = at('task', 'result', id);
  await eventually(() => expect(screen.raw()).toMatch(/░ +0 % step \d+/), PATIENT);
  await d.down();
  await screen.sees(/troupe: troupe (stops; the task goes on|went away; the task is kept)/);
  expect(await screen.code).toBe(4);
});
