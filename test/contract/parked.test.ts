// A call that waits for somebody's word can be ended by others before: whoever is first ends it, its caller is told once, and
// the question is withdrawn.

import { expect, it } from 'vitest';
import { NEVER_TOLD } from '../../src/calls/call.ts';
import { now } from '../../src/calls/deadlines.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import { eventually } from '../support/eventually.ts';
import { DELETE, tool, waitingRoom } from '../support/waiting.ts';

it('ends with a cancellation of its caller, and of nobody else', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  room.call('delete');
  expect(room.requests.isInFlight('_', 'delete')).toBe(true);
  expect(room.requests.cancel('bob', 'delete', 'it is mine')).toBe(false);
  expect(room.requests.cancel('_', 'delete', 'the caller went away')).toBe(true);
  expect(room.fate('delete')).toMatch(/^cancelled, not sent: call to alpha was cancelled: the caller went away/);
  expect([room.opened[0]?.isWithdrawn, room.requests.isInFlight('_', 'delete')]).toEqual([true, false]);
  room.opened[0]?.end('approved');
  expect(room.requests.cancel('_', 'delete', 'again')).toBe(false);
  expect([room.written.length, await room.audit()]).toEqual([0, ['delete cancelled']]);
  expect(room.fate('delete')).toMatch(/^cancelled/);
});

it('is cancelled at its server once it was approved', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  room.call('delete');
  room.opened[0]?.end('approved');
  expect(room.requests.cancel('_', 'delete', 'no longer')).toBe(true);
  expect(room.cancelled).toEqual([`${room.written[0]?.id}: no longer`]);
  expect(room.fate('delete')).toMatch(/^cancelled, outcome unknown/);
});

it('ends when its server is removed, also before it was decided whether to ask', async () => {
  await using room = await waitingRoom({ approve: { wait: 'once', delete: 'always' } });
  for (const name of ['wait', 'delete']) room.call(name);
  room.requests.sendAway('alpha', 'it was removed');
  for (const name of ['delete', 'wait'])
    expect(room.fate(name)).toMatch(/^unavailable, not sent: server alpha went away: it was removed; .* not sent$/);
  expect(room.opened.map(({ isWithdrawn }) => isWithdrawn)).toEqual([true]);
  room.opened[0]?.end('approved');
  room.call('wait', { requestId: 'later' }); // it is decided together with the one that has left
  room.list(tool('wait'), DELETE);
  await eventually(() => room.opened.length > 1);
  expect(room.opened.slice(1).map(({ subject }) => subject.call.requestId)).toEqual(['later']);
  expect([room.fate('wait'), room.written]).toEqual([expect.stringMatching(/^unavailable/), []]);
  expect(await room.audit()).toHaveLength(2);
});

it('goes on with its patience anew, and no more in all than it had from the start', async () => {
  await using room = await waitingRoom({ timeoutMs: 60_900, maxTimeoutMs: 61_000, approve: 'always' });
  room.list(DELETE);
  room.call('delete');
  const { latestDeadline } = room.opened[0]!.subject;
  await eventually(() => latestDeadline - now() < 60_850);
  room.opened[0]?.end('approved');
  const request = room.lane.sent(String(room.written[0]?.id))!;
  expect(request.latestDeadline).toBe(latestDeadline);
  expect(request.deadline).toBeLessThanOrEqual(latestDeadline);
  room.lane.progress(request.id, { progress: 1 });
  expect(request.deadline).toBe(latestDeadline);
});

it.each([
  ['has said how long it waits', { timeoutMs: 5_000 }, 5_000],
  ['cannot be told what it waits for', { isTold: NEVER_TOLD }, 60_000],
  ['can be told', { isTold: () => true }, 600_000],
  ['is a task', { timeoutMs: 300_000, maxTimeoutMs: 300_000, task: 't', isTold: NEVER_TOLD }, 300_000],
])('may wait for a word as long as its caller does, who %s', async (_, more, ms) => {
  await using room = await waitingRoom({ approve: 'always' });
  const before = now();
  room.call('delete', more);
  const { latestDeadline } = room.opened[0]!.subject;
  expect([latestDeadline >= before + ms, latestDeadline <= now() + ms]).toEqual([true, true]);
});

it('keeps the promise of its time-out: the wait for a word counts, and what was said is no more time', async () => {
  await using room = await waitingRoom({ approve: 'always' });
  const before = now();
  room.call('delete', { requestId: 'approved', timeoutMs: 60_000 });
  await eventually(() => now() - before > 30);
  room.opened[0]?.end('approved');
  expect(room.lane.sent(String(room.written[0]?.id))?.deadline).toBeLessThan(before + 60_000 + 20);
  room.call('delete', { requestId: 'unheard', timeoutMs: 30 });
  await eventually(() => room.fate('unheard') !== 'waits');
  expect(room.fate('unheard')).toMatch(/^timeout, not sent/);
  expect([room.opened[1]?.isWithdrawn, room.written.length]).toEqual([true, 1]);
});

it('does not wait for a list longer than its caller does', async () => {
  await using room = await waitingRoom();
  room.turn('opening');
  room.call('delete', { timeoutMs: 30 });
  await eventually(() => room.fate('delete') !== 'waits');
  expect(room.fate('delete')).toMatch(
    /^timeout, not sent: server alpha \(opening\) did not answer delete within 30 ms/,
  );
  expect(room.requests.isInFlight('_', 'delete')).toBe(false);
});

it('is not sent when its caller has left for good, also when somebody approves it this very moment', async () => {
  await using room = await waitingRoom({ approve: 'always' });
  room.call('delete');
  const gone = (id: string) => room.requests.callerIs('gone', '_', id);
  gone('delete');
  room.opened[0]?.end('approved');
  expect(room.fate('delete')).toMatch(/^cancelled, not sent: .* the caller went away/);
  expect(room.opened[0]?.isWithdrawn).toBe(true);
  room.lane.setGate({ mode: 'hold', state: 'opening', why: '' });
  room.call('delete', { requestId: 'queued' });
  room.opened[1]?.end('approved'); // the server is not there yet
  gone('queued');
  room.lane.setGate({ mode: 'open', state: 'ready', why: '' });
  expect([room.fate('queued'), room.written]).toEqual([expect.stringMatching(/^cancelled, not sent/), []]);
});

it('that was approved while its caller was away is sent when the caller is back, and only then', async () => {
  await using room = await waitingRoom({ approve: 'always' });
  const away = { isAbsent: () => true };
  for (const requestId of ['back', 'gone', 'there'])
    room.call('delete', { requestId, args: { requestId }, ...(requestId !== 'there' && away) });
  for (const { end } of room.opened) end('approved');
  const sent = () => room.written.map(({ params }) => params.arguments.requestId);
  expect([sent(), room.fate('back'), room.fate('gone')]).toEqual([['there'], 'waits', 'waits']);
  room.requests.callerIs('back', '_', 'back');
  room.requests.callerIs('gone', '_', 'gone');
  expect([sent(), room.fate('gone')]).toEqual([['there', 'back'], expect.stringMatching(/^cancelled, not sent/)]);
});

it('goes on at its server when its caller has left, and the answer is nobody’s', async () => {
  await using room = await waitingRoom({});
  room.call('look');
  room.requests.callerIs('gone', '_', 'look');
  expect([room.cancelled, room.fate('look')]).toEqual([[], 'waits']);
  room.answer(0, 'result', {});
  expect(room.fate('look')).toBe('ok {}');
});

it('finds its server gone, or full, when it is approved', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  room.call('delete', { requestId: 'gone' });
  room.call('delete', { requestId: 'full' });
  room.world.memberFor = () => undefined;
  room.opened[0]?.end('approved');
  room.world.memberFor = () => {
    throw new TroupeError('busy', 'server alpha already has 32 processes');
  };
  room.opened[1]?.end('approved');
  expect(room.fate('gone')).toMatch(/^unavailable, not sent: server alpha went away/);
  expect(room.fate('full')).toBe('busy, not sent: server alpha already has 32 processes');
});

it('is refused when as many wait as may wait, and when nobody can be asked', async () => {
  await using room = await waitingRoom({ maxQueued: 1, approve: 'always' });
  room.list(DELETE);
  room.call('delete', { requestId: 'a' });
  room.call('delete', { requestId: 'b' });
  expect([room.fate('a'), room.fate('b')]).toEqual(['waits', expect.stringMatching(/^busy, not sent: .*maxQueued/)]);
  room.requests.cancel('_', 'a', '');
  room.world.openAsk = () => {
    throw new Error('the registry is broken');
  };
  room.call('delete', { requestId: 'c' });
  expect(room.fate('c')).toMatch(/^unavailable, not sent/);
});

it('is settled once when it is answered before the asking is done', async () => {
  await using room = await waitingRoom();
  room.list(DELETE);
  room.world.openAsk = (_question, _subject, _member, onEnded) => {
    onEnded('approved', 'a rule', '');
    return () => onEnded('withdrawn', '', '');
  };
  room.call('delete');
  room.answer(0, 'result', {});
  expect([room.fate('delete'), room.written.length]).toEqual(['ok {}', 1]);
});
