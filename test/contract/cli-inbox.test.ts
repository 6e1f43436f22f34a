// `troupe inbox`, and what `troupe call` says while it waits, against the control socket.

import { expect, test } from 'vitest';
import { askText } from '../../src/cli/terminal/progress.ts';
import { type Asked, type Reply, workplace } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

const ask = (id: string, more: object = {}) => ({
  ...{ id: `${id}-0000-4000-8000-000000000000`, kind: 'elicitation', mode: 'form', stage: 'answer' },
  ...{ server: 'everything', tool: 'greet', principal: '_', message: 'Who are you?', schema: { type: 'object' } },
  ...{ openedAt: Date.now() - 65_000, expiresAt: Date.now() + 545_000, waitsOn: 'inbox', ...more },
});
const ASKS = [
  ask('ab12cd34', { message: `Who are\nyou, \x1b[31mreally\x07?\u202e ${'And why? '.repeat(30)}` }),
  ask('bb12cd34', { mode: 'url', stage: 'done', url: 'https://example.com/a' }),
  ask('cb12cd34', {
    kind: 'sampling',
    stage: 'request',
    tool: 'a-tool-with-a-name-that-is-longer-than-any-other-here',
  }),
  ask('db12cd34', {
    ...{ kind: 'sampling', stage: 'result', tool: '' },
    result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello there' } },
  }),
  ask('eb12cd34', {
    kind: 'approval',
    server: 'a-server-whose-name-is-long-too',
    tool: 'rm',
    arguments: { path: '/' },
  }),
];
const listing =
  (asks: readonly object[], version = 1) =>
  (): Reply => ({ result: JSON.stringify({ version, asks }) });

test('every question is one row with its words below, in 80 columns, behind the name of who says them', async () => {
  await using place = workplace();
  await place.control(listing(ASKS));
  const { code, stdout, stderr } = await place.run('inbox');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^ID +AGE +EXPIRES +KIND +SERVER +TOOL$/);
  expect(lines[1]).toMatch(/^ab12cd34 +1m +in 9m +form +everything +greet$/);
  expect(lines[2]).toMatch(/^ +everything asks: Who are you, \\u001b\[31mreally\\u0007\?\\u202e And why\? .*…$/);
  expect(lines[3]).toMatch(/^bb12cd34 .* url done +everything/);
  expect(lines[5]).toMatch(/^cb12cd34 .* sampling request +everything +a-tool.*…$/);
  expect(lines[6]).toMatch(/^ +everything asks a model: Who are you\?$/);
  expect(lines[8]).toMatch(/^ +a model would tell everything: Hello there$/);
  expect(lines[9]).toMatch(/^eb12cd34 .* approval +a-server.*… +rm$/);
  expect(lines[10]).toMatch(/^ +a-server-whose-name-is-long-too would be called with \{"path":"\/"\}$/);
  expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(80);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
});

test('no question is one friendly line, and an empty array', async () => {
  await using place = workplace();
  await place.control(listing([]));
  expect(await place.run('inbox')).toEqual({ code: 0, stdout: '', stderr: 'no questions are waiting\n' });
  expect(await place.run('inbox', '--json')).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
});

test('--json is the array as the daemon has it, byte for byte', async () => {
  await using place = workplace();
  const asks = '[{"id":"ab12cd34","schema":{"default":12345678901234567890},  "openedAt":1}]';
  await place.control(() => ({ result: `{"version":3,"asks":${asks}}` }));
  expect((await place.run('inbox', '--json')).stdout).toBe(`${asks}\n`);
});

/** A daemon whose inbox is changed by the test; whoever waits for it hears of that. */
function changing(first: readonly object[]) {
  let state = { version: 1, asks: first };
  const waiting = new Set<() => void>();
  const since: unknown[] = [];
  return {
    since,
    change(asks: readonly object[]) {
      state = { version: state.version + 1, asks };
      for (const wake of waiting) wake();
      waiting.clear();
    },
    answer({ id, params }: Asked, socket: { write(text: string): unknown }): Reply {
      since.push(params.since);
      const send = () => socket.write(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(state)}}\n`);
      if (params.since === state.version) waiting.add(send);
      else send();
      return undefined;
    },
  };
}

test('-f on a pipe is a line for each question that opens, changes and closes, and Ctrl-C is no failure', async () => {
  await using place = workplace();
  const [form, , review] = ASKS;
  const daemon = changing([form as object]);
  await place.control(daemon.answer);
  const { child, stdout, done } = place.start('inbox', '-f');
  await eventually(
    () => expect(stdout()).toMatch(/^\d\d:\d\d:\d\d opened ab12cd34 form: everything asks: Who/),
    15_000,
  );
  daemon.change([form as object, review as object]);
  await eventually(() => expect(stdout()).toMatch(/opened cb12cd34 sampling request: everything asks a model/));
  daemon.change([{ ...review, stage: 'result' }]);
  await eventually(() =>
    expect(stdout()).toMatch(/closed ab12cd34 form of everything\n.* changed cb12cd34 sampling result/),
  );
  child.kill('SIGINT');
  expect(await done).toMatchObject({ code: 0, stderr: '' });
  expect(stdout().trimEnd().split('\n')).toHaveLength(4);
  expect(daemon.since).toEqual([undefined, 1, 2, 3]);
});

test('-f --json is one array a line, once for each change', async () => {
  await using place = workplace();
  const daemon = changing([]);
  await place.control(daemon.answer);
  const { child, stdout, done } = place.start('inbox', '-f', '--json');
  await eventually(() => expect(stdout()).toBe('[]\n'), 15_000);
  daemon.change(ASKS.slice(0, 1));
  await eventually(() => expect(stdout().split('\n')).toHaveLength(3));
  expect(JSON.parse(stdout().split('\n')[1] ?? '')).toEqual(ASKS.slice(0, 1));
  child.kill('SIGINT');
  expect((await done).code).toBe(0);
});

test('-f says so when the daemon goes away', async () => {
  await using place = workplace();
  await place.control(({ params }, socket) => {
    if (params.since === undefined) return { result: '{"version":1,"asks":[]}' };
    return void socket.destroy() as undefined;
  });
  const { code, stderr } = await place.run('inbox', '-f');
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('troupe has stopped') });
});

test('a call that waits says once how to answer, also to a pipe, and not among JSON', async () => {
  await using place = workplace();
  const params = { ask: ASKS[0]?.id, kind: 'elicitation', expiresAt: 1 };
  await place.control(({ id }, socket) => {
    const notice = JSON.stringify({ jsonrpc: '2.0', method: 'ask', params: { ...params, id } });
    socket.write(`${notice}\n${notice}\n`);
    return { result: '{"content":[{"type":"text","text":"hi"}]}' };
  });
  const said = 'everything asks a question; answer it with: troupe answer ab12cd34\n';
  expect(await place.run('call', 'everything', 'greet')).toEqual({ code: 0, stdout: 'hi\n', stderr: said });
  expect((await place.run('read', 'everything', 'a://b')).stderr).toBe(said);
  expect((await place.run('call', 'everything', 'greet', '--json')).stderr).toBe('');
});

test('the notice names the daemon where it has a name, and tells an approval from a question', () => {
  const notice = { ask: 'ab12cd34-0000', kind: 'approval' };
  expect(askText(notice, { server: 'files', instance: 'two' })).toBe(
    'the call to files waits for approval: troupe answer ab12cd34 --instance two',
  );
});

test('status counts what is open, and says nothing where there is none', async () => {
  await using place = workplace();
  let asks: object | undefined = { open: 2 };
  const status = {
    daemon: { pid: 1, version: '0', uptimeMs: 1, state: 'running', logFile: '/l', memoryBytes: 1 },
    ...{ bus: { state: 'online' }, store: { state: 'ready' }, plugins: [], servers: [] },
  };
  await place.control(() => ({ result: JSON.stringify({ ...status, asks }) }));
  expect((await place.run('status')).stdout).toMatch(/^asks +2 open; see `troupe inbox`$/m);
  asks = undefined;
  expect((await place.run('status')).stdout).not.toMatch(/^asks/m);
});
