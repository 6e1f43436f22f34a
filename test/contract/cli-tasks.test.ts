// `troupe tasks` against the control socket: the table, its pages, what a pipe and a program hear of changes, and prune.

import { expect, test } from 'vitest';
import { barCell } from '../../src/cli/terminal/progress.ts';
import { eventually } from '../support/eventually.ts';
import { taskDaemon, taskOf } from '../support/task-daemon.ts';

const widest = (printed: string): number => Math.max(...printed.split('\n').map((line) => [...line].length));
const HOSTILE = `step\n2 \x1b[31mred\x07\u202e ${'and more '.repeat(30)}`;
/** Newest first, as the daemon lists them. */
const TASKS = [
  taskOf('f0', { status: 'input_required' }),
  taskOf('e0', { status: 'cancelled', phase: 'ended', statusMessage: 'cancelled by troupe task cancel' }),
  taskOf('d0', { status: 'failed', phase: 'ended', statusMessage: HOSTILE, server: 'a-server-with-quite-a-long-name' }),
  taskOf('c0', { status: 'completed', phase: 'ended', progress: { progress: 4, total: 4 } }),
  taskOf('b0', {
    progress: { progress: 2, total: 5, message: HOSTILE },
    tool: 'a-tool-with-a-name-longer-than-others',
  }),
  taskOf('a0', { phase: 'queued' }),
];

test('every task is one row of 80 columns, newest last, with how far it is or what was said last', async () => {
  await using daemon = await taskDaemon(TASKS, {}, 2);
  const { code, stdout, stderr } = await daemon.run('tasks');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^ID +SERVER +TOOL +STATUS +AGE +PROGRESS$/);
  expect(lines[1]).toMatch(/^a0000000 +demo +add +queued +1m$/);
  expect(lines[2]).toMatch(/^b0000000 +demo +a-tool.*… +working +1m +███░░░░░ 40 %.*…$/);
  expect(lines[3]).toMatch(/^c0000000 +demo +add +completed +1m$/);
  expect(lines[4]).toMatch(/^d0000000 +a-server.*… +add +failed +1m +step 2 \\u001b\[.*…$/);
  expect(lines[5]).toMatch(/^e0000000 +demo +add +cancelled +1m +cancelled by/);
  expect(lines[6]).toMatch(/^f0000000 +demo +add +input_required +1m +needs an answ/);
  expect(widest(stdout)).toBeLessThanOrEqual(80);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  expect(daemon.askedFor('tasks')).toEqual([{}, { cursor: '2' }, { cursor: '4' }]);
});

test('ids are as short as tells them apart', async () => {
  await using daemon = await taskDaemon([taskOf('ab12cd34ef1'), taskOf('ab12cd34ef2'), taskOf('00')]);
  const { stdout } = await daemon.run('tasks');
  expect(stdout.match(/^\w+/gm)).toEqual(['ID', '00000000000', 'ab12cd34ef2', 'ab12cd34ef1']);
});

test('no task is one line that says how to make one, and an empty array', async () => {
  await using daemon = await taskDaemon([]);
  const said = 'no tasks; `troupe call <server> <tool> --task` makes one\n';
  expect(await daemon.run('tasks')).toEqual({ code: 0, stdout: '', stderr: said });
  expect(await daemon.run('tasks', '--json')).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
});

test('--json is every task of every page as the daemon wrote it, newest last', async () => {
  const pages: Record<string, string> = {
    first:
      '{"version":1,"tasks":[{"taskId":"c","progress":{"progress":12345678901234567890}},{"taskId":"b"}],"next":"x"}',
    x: '{"version":1,"tasks":[ {"taskId":  "a"} ]}',
  };
  await using daemon = await taskDaemon([], {
    tasks: ({ cursor = 'first' }) => ({ result: pages[cursor] ?? '' }),
  });
  const { code, stdout } = await daemon.run('tasks', '--json');
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: '[{"taskId":  "a"},{"taskId":"b"},{"taskId":"c","progress":{"progress":12345678901234567890}}]\n',
  });
});

test('more than a thousand are cut with a word on how to see the rest; a program gets all', async () => {
  const many = Array.from({ length: 1_100 }, (_, index) => taskOf(index.toString(16).padStart(8, '0')));
  await using daemon = await taskDaemon(many, {}, 400);
  const some = await daemon.run('tasks');
  expect(some.stdout.trimEnd().split('\n')).toHaveLength(1_001);
  expect(some.stdout).toMatch(/^00000000 .*\n$/m);
  expect(some.stderr).toBe('these are the newest 1000; `troupe tasks --all` lists every one\n');
  const all = await daemon.run('tasks', '--all');
  expect([all.stdout.trimEnd().split('\n').length, all.stderr]).toEqual([1_101, '']);
  expect(JSON.parse((await daemon.run('tasks', '--json')).stdout)).toHaveLength(1_100);
});

const ended = { status: 'completed', phase: 'ended' } as const;

test('-f on a pipe is a line for each change, also of what came and went at once; Ctrl-C is no failure', async () => {
  const old = Array.from({ length: 6 }, (_, index) => taskOf(`9${index}`, ended));
  const slow = taskOf('a0');
  await using daemon = await taskDaemon([...old, slow], {}, 3);
  const { child, stdout, done } = daemon.start('tasks', '-f');
  await eventually(() => expect(stdout()).toMatch(/^\d\d:\d\d:\d\d a0000000 working add of demo\n$/), 15_000);
  daemon.change([...old, { ...slow, progress: { progress: 7, message: 'read\x1b[2J' } }]);
  await eventually(() => expect(stdout()).toMatch(/a0000000 working add of demo: … 7 read\\u001b\[2J\n$/), 15_000);
  // Four are new, which is more than a page, and the one that is open is far behind them.
  const quick = ['e', 'd', 'c', 'b'].map((id) => taskOf(id, ended));
  daemon.change([...quick, ...old, { ...slow, status: 'input_required' }]);
  await eventually(() => expect(stdout().trimEnd().split('\n')).toHaveLength(7), 15_000);
  expect(
    stdout()
      .trimEnd()
      .split('\n')
      .slice(2)
      .map((line) => line.slice(9, 36)),
  ).toEqual([
    ...['a0000000 input_required add', 'b0000000 completed add of d', 'c0000000 completed add of d'],
    ...['d0000000 completed add of d', 'e0000000 completed add of d'],
  ]);
  daemon.change([...quick, ...old, { ...slow, status: 'failed', phase: 'ended', statusMessage: 'it died' }]);
  await eventually(() => expect(stdout()).toMatch(/a0000000 failed add of demo: it died\n$/), 15_000);
  daemon.change([]);
  await eventually(() => expect(daemon.askedFor('tasks').at(-1)).toEqual({ since: 5 }), 15_000);
  child.kill('SIGINT');
  expect(await done).toMatchObject({ code: 0, stderr: '' });
  expect(stdout().trimEnd().split('\n')).toHaveLength(8);
});

test('-f --json is one task a line, as the daemon wrote it, whenever it changes', async () => {
  const [first, second] = [taskOf('a0'), taskOf('b0')];
  await using daemon = await taskDaemon([taskOf('00', ended), first]);
  const { child, stdout, done } = daemon.start('tasks', '-f', '--json');
  const told = () =>
    stdout()
      .trimEnd()
      .split('\n')
      .map((line) => line && JSON.parse(line));
  await eventually(() => expect(told()).toEqual([first]), 15_000);
  const after = { ...first, ...ended };
  daemon.change([second, taskOf('00', ended), after]);
  await eventually(() => expect(told()).toEqual([first, after, second]), 15_000);
  child.kill('SIGINT');
  expect((await done).code).toBe(0);
});

test('-f says so when the daemon goes away', async () => {
  await using daemon = await taskDaemon([taskOf('a0')]);
  const { stdout, done } = daemon.start('tasks', '-f');
  await eventually(() => expect(stdout()).toContain('a0000000'), 15_000);
  daemon.hangUp();
  expect(await done).toMatchObject({ code: 4, stderr: expect.stringContaining('troupe has stopped') });
});

test.each([
  [[], 0, '{"removed":12}', '12 tasks removed\n'],
  [['--older', '1d'], 86_400_000, '{"removed":1}', '1 task removed\n'],
  [['--json'], 0, '{"removed":0}', '{"removed":0}\n'],
])('tasks prune %j removes what has ended', async (flags, olderMs, result, said) => {
  await using daemon = await taskDaemon([], { tasksPrune: () => ({ result }) });
  expect(await daemon.run('tasks', 'prune', ...flags)).toEqual({ code: 0, stdout: said, stderr: '' });
  expect(daemon.askedFor('tasksPrune')).toEqual([{ olderMs }]);
});

test.each([
  [['list'], "tasks knows prune, not 'list'"],
  [['--older', '1d'], '--older goes with tasks prune'],
  [['prune', '-f'], '-f does not go with tasks prune'],
  [['prune', '--all'], '--all does not go with tasks prune'],
  [['prune', '--older', 'soon'], "--older wants a time like 500ms, 30s, 2m, 1h or 7d, not 'soon'"],
])('tasks %j is a usage error, and nothing is asked', async (words, sentence) => {
  await using daemon = await taskDaemon([]);
  expect(await daemon.run('tasks', ...words)).toEqual({ code: 2, stdout: '', stderr: `troupe: ${sentence}\n` });
  expect(daemon.asked).toEqual([]);
});

test('a bar never claims more than there is, and counts where no end is known', () => {
  expect(barCell({ progress: 3, total: 4 }, 4)).toBe('███░ 75 %');
  expect(barCell({ progress: 999, total: 1_000 })).toBe('███████░ 99 %');
  expect(barCell({ progress: 9, total: 4 })).toBe('████████ 100 %');
  expect(barCell({ progress: -1, total: 4 })).toBe('░░░░░░░░ 0 %');
  expect(barCell({ progress: 7, total: 0, message: 'a\nb' })).toBe('… 7 a b');
});
