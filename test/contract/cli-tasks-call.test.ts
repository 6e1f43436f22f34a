// `troupe call --task`: what leaves for the daemon, what a script and a person get back, and what cannot be meant.

import { expect, test } from 'vitest';
import { taskCommand } from '../../src/cli/tasks/words.ts';
import { idOf, refusal, taskDaemon, taskOf } from '../support/task-daemon.ts';

const ID = idOf('ab12cd34ef');
const made = { taskCreate: () => ({ result: JSON.stringify(taskOf('ab12cd34ef', { phase: 'queued' })) }) };

test('the id alone goes to stdout, and one line on how to look at it to the person', async () => {
  await using daemon = await taskDaemon([], made);
  const { code, stdout, stderr } = await daemon.run(
    'call',
    'demo',
    'add',
    '--args',
    '{"a":9007199254740993,  "b":1.0}',
    '--task',
  );
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: `${ID}\n`,
    stderr: '`troupe task get ab12cd34` shows it, `troupe task result ab12cd34` waits for it\n',
  });
  expect(daemon.askedFor('taskCreate')).toHaveLength(1);
  expect(daemon.asked[0]?.line).toContain(
    '"params":{"server":"demo","tool":"add","params":{"name":"add","arguments":{"a":9007199254740993,  "b":1.0}}}',
  );
});

test('how long it may live and its key go along; --json is the task as the daemon wrote it', async () => {
  const result = '{"taskId":"x",  "ttl":5400000}';
  await using daemon = await taskDaemon([], { taskCreate: () => ({ result }) });
  const words = ['call', 'demo', 'add', '--task', '--ttl', '1.5h', '--key', 'once "a" day', '--json'];
  expect(await daemon.run(...words)).toEqual({ code: 0, stdout: `${result}\n`, stderr: '' });
  expect(daemon.askedFor('taskCreate')).toEqual([
    { server: 'demo', tool: 'add', ttlMs: 5_400_000, key: 'once "a" day', params: { name: 'add', arguments: {} } },
  ]);
});

test('pairs are typed by the schema of the tool, as in a call that waits', async () => {
  const item = { name: 'add', inputSchema: { properties: { a: { type: 'string' } } } };
  const list = JSON.stringify({ items: [{ server: 'demo', item }], missing: [] });
  await using daemon = await taskDaemon([], { ...made, list: () => ({ result: list }) });
  expect((await daemon.run('call', 'demo', 'add', 'a=5', 'b=5', '--task')).code).toBe(0);
  expect(daemon.askedFor('taskCreate')[0].params.arguments).toEqual({ a: '5', b: 5 });
});

test('the daemon of another name is named in what is to be typed', () => {
  expect(taskCommand('get', ID, 'two')).toBe('troupe task get ab12cd34 --instance two');
});

test.each([
  ['busy', 1],
  ['unavailable', 4],
  ['unknownServer', 1],
  ['invalid', 2],
])('a task that is refused as %s ends with %d and its sentence, and prints no id', async (code, exit) => {
  await using daemon = await taskDaemon([], { taskCreate: () => refusal(code, 'there are 1000 open tasks') });
  expect(await daemon.run('call', 'demo', 'add', '--task')).toEqual({
    ...{ code: exit, stdout: '', stderr: 'troupe: there are 1000 open tasks\n' },
  });
});

test.each([
  [['--ttl', '1h'], '--ttl goes with --task'],
  [['--key', 'k'], '--key goes with --task'],
  [['--task', '--ttl', 'soon'], "--ttl wants a time like 500ms, 30s, 2m, 1h or 7d, not 'soon'"],
  [['--task', '--ttl', '0'], "--ttl wants a time like 500ms, 30s, 2m, 1h or 7d, not '0'"],
  [['--task', '--key', ''], '--key wants a word that only this call has'],
  [['--task', '--timeout', '3s'], '--timeout does not go with --task; --ttl says how long it may live'],
])('call %j is a usage error, and nothing is asked', async (flags, sentence) => {
  await using daemon = await taskDaemon([], made);
  expect(await daemon.run('call', 'demo', 'add', ...flags)).toEqual({
    ...{ code: 2, stdout: '', stderr: `troupe: ${sentence}\n` },
  });
  expect(daemon.asked).toEqual([]);
});
