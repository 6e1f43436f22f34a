// A call that waits for somebody's word can be ended by others before: whoever is first ends it, its caller is told once, and
// the question is withdrawn.

import { expect, it } from 'vitest';
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
  await using room = await waitingRoom({ timeoutMs: 60_000, maxTimeoutMs: 61_000, approve: 'always' });
  room.list(DELETE);
  room.call('delete', { timeoutMs: 60_900 });
  const { latestDeadline } = room.opened[0]!.subject;
  await eventually(() => latestDeadline - now() < 60_850);
  room.opened[0]?.end('approved');
  const request = room.lane.sent(String(room.written[0]?.id))!;
  expect(request.latestDeadline).toBe(latestDeadline);
  expect(request.deadline).toBeLessThanOrEqual(latestDeadline);
  room.lane.progress(request.id, { progress: 1 });
  expect(request.deadline).toBe(latestDeadline);
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
    onEnded('approved', 'a rule');
    return () => onEnded('withdrawn', '');
  };
  room.call('delete');
  room.answer(0, 'result', {});
  expect([room.fate('delete'), room.written.length]).toEqual(['ok {}', 1]);
});
