// Which calls wait for somebody's word, and what becomes of them: nothing is sent before it is given, and every caller is told
// once, whatever is said.

import { expect, it } from 'vitest';
import type { Pool } from '../../src/servers/pool.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';
import { DELETE, LOOK, tool, type WaitingRoom, waitingRoom } from '../support/waiting.ts';

const sentTools = ({ written }: WaitingRoom) => written.map(({ params }) => params.name);
const asked = ({ opened }: WaitingRoom) => opened.map(({ subject }) => subject.call.name);

it('sends a tool at once that no rule names, whatever it says of itself, also before its server has said anything', async () => {
  await using room = await waitingRoom({ approve: { 'wipe*': 'always' } });
  await using plain = await waitingRoom({});
  for (const { call } of [room, plain]) call('early');
  for (const { list } of [room, plain]) list(DELETE, tool('says nothing'), tool('early'));
  for (const { call } of [room, plain]) for (const name of ['delete', 'says nothing']) call(name);
  for (const each of [room, plain]) expect(sentTools(each)).toEqual(['early', 'delete', 'says nothing']);
  expect([...room.opened, ...plain.opened]).toEqual([]);
});

it('asks about a tool that is destructive, with its arguments, and sends it when it is approved', async () => {
  await using room = await waitingRoom();
  room.list(DELETE, LOOK);
  room.call('look');
  room.call('delete', { args: { path: 'a', big: 1 } });
  expect([sentTools(room), asked(room), room.fate('delete')]).toEqual([['look'], ['delete'], 'waits']);
  expect(room.opened[0]?.question).toEqual({
    ...{ kind: 'approval', message: 'delete of alpha wants to run' },
    arguments: Buffer.from('{"path":"a","big":1}'),
  });
  room.opened[0]?.end('approved', 'troupe answer');
  expect(room.written[1]?.params.arguments).toEqual({ path: 'a', big: 1 });
  room.answer(1, 'result', { content: [] });
  expect(room.fate('delete')).toBe('ok {"content":[]}');
  room.call('delete', { requestId: 'again' });
  expect(asked(room)).toEqual(['delete', 'delete']);
});

const DESTRUCTIVE = { approve: 'destructive' };
it.each([
  [{ destructiveHint: true }, {}, false],
  [{ destructiveHint: true }, { trust: true }, false],
  // By the letter of MCP: what does not say otherwise may destroy.
  [{ destructiveHint: true }, DESTRUCTIVE, true],
  [{}, DESTRUCTIVE, true],
  [undefined, DESTRUCTIVE, true],
  [{ destructiveHint: 'false' }, DESTRUCTIVE, true],
  [{ readOnlyHint: false }, DESTRUCTIVE, true],
  [{ title: 'Delete' }, { ...DESTRUCTIVE, trust: true }, true],
  [{ destructiveHint: false }, DESTRUCTIVE, false],
  [{ readOnlyHint: true }, DESTRUCTIVE, false],
  [{ destructiveHint: true, readOnlyHint: true }, DESTRUCTIVE, false],
  [{}, { approve: { 'd*': 'destructive', '*': 'never' } }, true],
  [{ readOnlyHint: true }, { approve: { '*': 'destructive', delete: 'always' } }, false],
  [{ destructiveHint: true }, { approve: { del: 'always', 'del*': 'never' } }, false],
  [{ destructiveHint: true }, { approve: { del: 'always' } }, false],
  [{}, { approve: 'always' }, true],
  [{ readOnlyHint: true }, { approve: { '*': 'always' }, trust: true }, true],
  [{}, { approve: { 'd*e': 'always', delete: 'never' } }, true],
])(
  'of a tool that says %j with the settings %j it is %s that somebody is asked',
  async (annotations, xTroupe, isAsked) => {
    await using room = await waitingRoom(xTroupe);
    room.list(tool('delete', annotations));
    room.call('delete');
    expect([room.opened.length, room.written.length]).toEqual(isAsked ? [1, 0] : [0, 1]);
  },
);

it('asks about a name that is listed twice if either definition is destructive, and about a hint that is given twice', async () => {
  await using room = await waitingRoom();
  room.list(DELETE, { ...LOOK, name: 'delete' });
  room.call('delete');
  expect(room.opened).toHaveLength(1);
  const twice = '{"name":"twice","annotations":{"readOnlyHint":true,"readOnlyHint":false}}';
  room.catalog.set('alpha', 'tools', [{ name: 'twice', bytes: Buffer.from(twice) }]);
  room.call('twice');
  expect(room.opened).toHaveLength(2);
});

it('never asks about our own requests, nor about what is no tool', async () => {
  await using room = await waitingRoom({ approve: 'always' });
  room.list(DELETE);
  room.call('delete', { door: 'troupe', method: 'tools/call' });
  room.call('delete', { requestId: 'read', method: 'resources/read' });
  expect([room.opened.length, room.written.length]).toEqual([0, 2]);
});

it('tells the caller who declined, that nobody answered, or that nobody could be asked; nothing was sent', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  for (const requestId of ['denied', 'expired', 'full', 'withdrawn']) room.call('delete', { requestId });
  room.opened[0]?.end('denied', 'the host');
  room.opened[1]?.end('expired');
  room.opened[2]?.end('expired', 'too many questions are open');
  room.opened[3]?.end('withdrawn');
  expect(room.fate('denied')).toBe(
    'unauthorized, not sent: tool delete of alpha was not approved (declined by the host); it was not called',
  );
  expect(room.fate('expired')).toMatch(
    /^timeout, not sent: nobody approved tool delete of alpha within \d+ s \(`troupe answer 0123abcd` .*`troupe inbox`$/,
  );
  expect(room.fate('full')).toBe('busy, not sent: tool delete of alpha was not called: too many questions are open');
  expect(room.fate('withdrawn')).toMatch(/^unavailable, not sent: .* withdrawn/);
  expect(room.written).toEqual([]);
  expect(await room.audit()).toEqual(['delete unauthorized', 'delete timeout', 'delete busy', 'delete unavailable']);
  expect([room.member.calls, room.member.errors]).toEqual([4, 4]);
});

it('asks nobody about a call that would not be sent', async () => {
  await using room = await waitingRoom({ approve: 'always', tools: { deny: ['delete'] } });
  room.list(LOOK);
  room.call('delete');
  room.call('lok');
  room.lane.setGate({ mode: 'refuse', state: 'failed', why: 'it is broken' });
  room.member.state = 'failed';
  room.call('look');
  expect(room.fate('delete')).toMatch(/^unauthorized, not sent: tool delete of alpha is not allowed/);
  expect(room.fate('lok')).toMatch(/did you mean look/);
  expect(room.fate('look')).toMatch(/^unavailable, not sent: server alpha is failed/);
  expect(room.opened).toEqual([]);
});

it('asks also where the first process of a pool refuses, but another one would take the call', async () => {
  await using room = await waitingRoom();
  await using other = await waitingRoom();
  room.list(DELETE);
  room.lane.setGate({ mode: 'refuse', state: 'failed', why: 'it is broken' });
  room.member.state = 'failed';
  room.member.pool = { processes: () => [room.member, other.member] } as unknown as Pool;
  room.call('delete');
  expect(room.opened).toHaveLength(1);
});

it('shows nobody one set of arguments where the server could see another', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  room.call('delete', { params: Buffer.from('{"name":"delete","arguments":{"path":"a"},"arguments":{"path":"/"}}') });
  expect(room.fate('delete')).toMatch(/^invalid, not sent: .* has its arguments twice/);
  const twice = (requestId: string, args: string) =>
    room.call('delete', { requestId, params: Buffer.from(`{"name":"delete","arguments":${args}}`) });
  twice('flat', '{"path":"/etc","path":"/tmp/x"}');
  twice('deep', '{"a":{"path":1},"list":[{"path":1},{"path":"/etc","\\u0070ath":"/tmp/x"}]}');
  for (const each of ['flat', 'deep']) expect(room.fate(each)).toMatch(/^invalid, not sent: .* a name twice in its/);
  expect([room.opened, room.written]).toEqual([[], []]);
  room.call('delete', { requestId: 'bare', params: Buffer.from('{"name":"delete"}') });
  expect(room.opened.map(({ question }) => String((question as { arguments?: Buffer }).arguments))).toEqual(['{}']);
});

it('asks once for each principal and tool while its definition is the same, also after a restart', async () => {
  await using dir = await scratch();
  {
    await using room = await waitingRoom({ approve: 'once' }, dir.path);
    room.list(LOOK, DELETE);
    room.call('look');
    room.opened[0]?.end('approved');
    await eventually(() => room.written.length === 1);
    room.call('look', { requestId: 'second' });
    expect([room.opened.length, room.written.length]).toEqual([1, 2]);
    room.call('look', { requestId: 'other', principal: 'bob' });
    room.call('delete');
    expect(room.opened.map(({ subject: { call } }) => `${call.principal} ${call.name}`)).toEqual([
      ...['_ look', 'bob look', '_ delete'],
    ]);
    room.opened[1]?.end('denied');
    room.call('look', { requestId: 'bob again', principal: 'bob' });
    expect(room.opened).toHaveLength(4);
  }
  await using room = await waitingRoom({ approve: 'once' }, dir.path);
  room.list(LOOK);
  room.call('look');
  expect([room.opened.length, room.written.length]).toEqual([0, 1]);
  room.list({ ...LOOK, description: 'Now it looks for something else.' });
  room.call('look', { requestId: 'changed' });
  expect([room.opened.length, room.written.length]).toEqual([1, 1]);
});

it('lets all calls of a tool pass that wait for the same word when it is given once', async () => {
  await using room = await waitingRoom({ approve: 'once' });
  room.list(LOOK, DELETE);
  for (const requestId of ['a', 'b', 'c']) room.call('look', { requestId });
  room.call('look', { requestId: 'bob', principal: 'bob' });
  room.call('delete');
  room.opened[2]?.end('approved');
  await eventually(() => room.written.length === 3);
  expect(room.opened.map(({ isWithdrawn }) => isWithdrawn)).toEqual([true, true, false, false, false]);
});

it('keeps what was approved once before anything is sent for it', async () => {
  await using room = await waitingRoom({ approve: 'once' });
  room.list(LOOK);
  const kept = () => room.store.get('approval', ['_', 'alpha', 'look']);
  room.call('look', { requestId: 'a' });
  room.call('look', { requestId: 'b' });
  const before = room.written.push.bind(room.written);
  const keptWhenSent: boolean[] = [];
  room.written.push = (...frames) => {
    keptWhenSent.push(kept() !== undefined);
    return before(...frames);
  };
  room.opened[0]?.end('approved');
  expect(room.written).toHaveLength(0);
  await eventually(() => room.written.length === 2);
  expect(keptWhenSent).toEqual([true, true]);
});

it('forgets no approval for as long as it runs, also when the disk takes none', async () => {
  await using room = await waitingRoom({ approve: 'once' });
  room.list(LOOK);
  await room.store.close();
  room.call('look', { requestId: 'a' });
  room.opened[0]?.end('approved');
  await eventually(() => room.written.length === 1);
  room.call('look', { requestId: 'b' });
  expect([room.opened.length, room.written.length]).toEqual([1, 2]);
});

it('waits for the first list of a server before it decides, and wakes one that sleeps', async () => {
  await using room = await waitingRoom();
  room.lane.setGate({ mode: 'hold', state: 'asleep', why: '' });
  room.member.state = 'asleep';
  room.call('delete');
  room.call('look');
  await eventually(() => room.woken.length > 0);
  expect([room.opened.length, room.lane.queued]).toEqual([0, 0]);
  Object.assign(room.member, { state: 'ready', since: Date.now() });
  room.lane.setGate({ mode: 'open', state: 'ready', why: '' });
  room.list(DELETE, LOOK);
  await eventually(() => room.opened.length === 1);
  expect(sentTools(room)).toEqual(['look']);
});

it('does not wait for ever for a list that does not come: then it asks, unless a rule says never', async () => {
  await using room = await waitingRoom({ approve: { 'wipe*': 'once', 'see*': 'never', '*': 'destructive' } });
  room.member.since = Date.now() - 4_900;
  for (const name of ['look', 'wipe', 'see']) room.call(name);
  expect([room.opened.length, sentTools(room)]).toEqual([0, ['see']]);
  await eventually(() => room.opened.length === 2);
  expect([asked(room), sentTools(room)]).toEqual([['look', 'wipe'], ['see']]);
  room.call('look', { requestId: 'at once' });
  expect(asked(room)).toEqual(['look', 'wipe', 'look']);
  room.opened[0]?.end('approved');
  expect(sentTools(room)).toEqual(['see', 'look']);
});

it('asks about a tool that a list of an earlier life does not have, and about none that the present one has not', async () => {
  await using room = await waitingRoom();
  room.list(LOOK);
  room.catalog.expire('alpha');
  room.member.since = Date.now() - 60_000;
  room.call('new');
  room.call('look');
  expect([asked(room), sentTools(room)]).toEqual([['new'], ['look']]);
  room.list(LOOK);
  room.call('newer');
  expect(room.fate('newer')).toMatch(/^unknownName, not sent: server alpha has no tool newer/);
  expect(asked(room)).toEqual(['new']);
});

it('asks nobody about what no rule names of a server that does not say what it offers', async () => {
  await using room = await waitingRoom({ approve: { 'wipe*': 'always' } });
  room.member.since = Date.now() - 60_000;
  room.call('look');
  room.call('wipe');
  expect([asked(room), sentTools(room)]).toEqual([['wipe'], ['look']]);
});

it('looks a tool up in the present list when the remembered one does not have it, or it was approved once', async () => {
  await using room = await waitingRoom({ approve: { keep: 'once', look: 'never', '*': 'destructive' } });
  room.list(LOOK, tool('keep'));
  room.call('keep');
  room.opened[0]?.end('approved');
  await eventually(() => room.written.length === 1);
  room.catalog.expire('alpha');
  Object.assign(room.member, { since: Date.now() });
  for (const name of ['look', 'delete', 'keep']) room.call(name, { requestId: `stale ${name}` });
  expect(sentTools(room)).toEqual(['keep', 'look']);
  room.list(LOOK, DELETE, { ...tool('keep'), description: 'Changed.' });
  await eventually(() => room.opened.length === 3);
  expect(asked(room).sort()).toEqual(['delete', 'keep', 'keep']);
});

it('asks about a call that came while the server opened, once the ready server has had its time to list', async () => {
  await using room = await waitingRoom();
  room.turn('opening');
  room.call('x');
  room.turn('ready', { since: Date.now() - 4_900 });
  expect(room.opened).toHaveLength(0);
  await eventually(() => room.opened.length === 1);
});

it('judges a call that came while its server restarts by the next list, not by the last', async () => {
  await using room = await waitingRoom({ approve: 'once' });
  room.list(tool('x'));
  room.call('x', { requestId: 'before' });
  room.opened[0]?.end('approved');
  await eventually(() => room.written.length === 1);
  room.answer(0, 'result', {});
  for (const state of ['draining', 'closing'] as const) room.turn(state, { mode: 'hold' });
  room.call('x', { requestId: 'meanwhile' });
  for (const state of ['opening', 'ready'] as const) room.turn(state);
  room.list({ name: 'x', description: 'now it deletes everything' });
  await eventually(() => room.opened.length === 2);
  expect(room.written).toHaveLength(1);
});

it('asks nobody about a call whose server has failed before it said what it offers', async () => {
  await using room = await waitingRoom();
  room.turn('opening');
  room.call('x');
  room.turn('failed', { why: 'exited with code 1' });
  expect([room.fate('x'), room.opened.length]).toEqual([expect.stringMatching(/^unavailable, not sent/), 0]);
});

it('refuses a call that waits for a list at once when its server crashes and calls are not to be held', async () => {
  await using room = await waitingRoom({ holdMs: 0, approve: 'destructive' });
  room.turn('opening');
  room.call('x');
  room.turn('waiting', { why: 'exited with code 1' });
  await eventually(() => room.fate('x') !== 'waits');
  expect(room.fate('x')).toMatch(/^unavailable, not sent: server alpha is waiting/);
});
