// A server that wants an address visited before it does anything (-32042): somebody is asked, and the call is made once more
// when that is done. In all other cases the caller gets the server's error as it was.

import { expect, it } from 'vitest';
import { type WaitingRoom, waitingRoom } from '../support/waiting.ts';

const visit = (elicitationId: string, more: object = {}) => ({
  ...{
    mode: 'url',
    elicitationId,
    url: `https://example.com/${elicitationId}`,
    message: `Log in for ${elicitationId}`,
  },
  ...more,
});
const required = (...elicitations: object[]) => ({ code: -32042, message: 'first log in', data: { elicitations } });
const rejected = (error: object) => `rejected ${JSON.stringify(error)}`;

/** One call that its server has sent back. */
async function sentBack(error: object, more: Parameters<WaitingRoom['call']>[1] = {}) {
  const room = await waitingRoom({});
  room.list({ name: 'mail' });
  room.call('mail', more);
  room.answer(0, 'error', error);
  return room;
}

it('asks for each address, and makes the call once more under a new id when all is done', async () => {
  await using room = await sentBack(required(visit('one'), visit('two')));
  expect(room.opened.map(({ question }) => question)).toEqual(
    ['one', 'two'].map((id) => ({
      ...{ kind: 'elicitation', mode: 'url', message: `Log in for ${id}`, url: `https://example.com/${id}` },
      ...{ elicitationId: id, isRequired: true },
    })),
  );
  room.opened[0]?.end('completed');
  expect([room.written.length, room.fate('mail'), room.lane.inFlight]).toEqual([1, 'waits', 0]);
  room.opened[1]?.end('completed');
  expect(room.written[1]?.id).not.toBe(room.written[0]?.id);
  expect(room.written[1]?.params.arguments).toEqual(room.written[0]?.params.arguments);
  room.answer(1, 'result', { content: [] });
  expect(room.fate('mail')).toBe('ok {"content":[]}');
  expect(await room.audit()).toEqual(['mail rejected', 'mail ok']);
});

it('makes no third attempt: the second refusal goes to the caller', async () => {
  await using room = await sentBack(required(visit('one')));
  room.opened[0]?.end('completed');
  room.answer(1, 'error', required(visit('two')));
  expect([room.fate('mail'), room.opened.length, room.written.length]).toEqual([
    rejected(required(visit('two'))),
    1,
    2,
  ]);
});

it.each(['declined', 'cancelled', 'expired', 'withdrawn', 'interrupted'] as const)(
  'gives the caller the server’s own error when one address was %s, and withdraws the others',
  async (outcome) => {
    const error = required(visit('one'), visit('two'), visit('three'));
    await using room = await sentBack(error);
    room.opened[0]?.end('completed');
    room.opened[1]?.end(outcome);
    expect([room.fate('mail'), room.opened[2]?.isWithdrawn]).toEqual([rejected(error), true]);
    room.opened[2]?.end('completed');
    expect([room.written.length, await room.audit()]).toEqual([1, ['mail rejected']]);
  },
);

it('asks once for an id that is named twice', async () => {
  await using room = await sentBack(required(visit('one'), visit('one')));
  expect(room.opened).toHaveLength(1);
  room.opened[0]?.end('completed');
  expect(room.written).toHaveLength(2);
});

it.each([
  ['is handled by the caller itself', required(visit('a')), { handlesUrls: true }],
  ['came to one of our own requests', required(visit('a')), { door: 'troupe' as const }],
  ['came to a method that has none', required(visit('a')), { method: 'completion/complete' }],
  ['has another code', { ...required(visit('a')), code: -32603 }, {}],
  ['names no address', required(), {}],
  ['has no data', { code: -32042, message: 'first log in' }, {}],
  ['names too many', required(...Array.from({ length: 11 }, (_, at) => visit(`${at}`))), {}],
  ['wants a form', required(visit('a'), visit('b', { mode: 'form' })), {}],
  ['has an address of no web page', required(visit('a', { url: 'file:///etc/passwd' })), {}],
  ['has no id', required(visit('a', { elicitationId: undefined })), {}],
  ['has no message', required(visit('a', { message: 1 })), {}],
])('passes on an error that %s', async (_, error, more) => {
  await using room = await sentBack(error, more);
  expect([room.fate('mail'), room.opened.length]).toEqual([rejected(error), 0]);
});

it.each(['prompts/get', 'resources/read'])('does the same for %s', async (method) => {
  await using room = await waitingRoom({});
  room.catalog.set('alpha', 'prompts', [{ name: 'mail', bytes: Buffer.from('{"name":"mail"}') }]);
  room.call('mail', { method });
  room.answer(0, 'error', required(visit('one')));
  room.opened[0]?.end('completed');
  expect(room.written.map((frame) => frame.method)).toEqual([method, method]);
});

it('can be cancelled while somebody visits, and then says that the request failed', async () => {
  await using room = await sentBack(required(visit('one')));
  expect(room.requests.isInFlight('_', 'mail')).toBe(true);
  room.requests.cancel('_', 'mail', 'the caller went away');
  expect(room.fate('mail')).toBe(
    'cancelled, failed: call to alpha was cancelled: the caller went away; the request failed',
  );
  expect(room.opened[0]?.isWithdrawn).toBe(true);
  room.opened[0]?.end('completed');
  expect(room.written).toHaveLength(1);
});

it('gives the caller the server’s own error when the server is removed meanwhile', async () => {
  await using room = await sentBack(required(visit('one')));
  room.requests.sendAway('alpha', 'it was removed');
  expect([room.fate('mail'), room.opened[0]?.isWithdrawn]).toEqual([rejected(required(visit('one'))), true]);
});

it('goes back to the process that sent it away, or to whichever there is now', async () => {
  await using room = await sentBack(required(visit('one')));
  room.world.memberFor = () => undefined;
  room.opened[0]?.end('completed');
  expect(room.written).toHaveLength(2);
  await using other = await sentBack(required(visit('one')));
  other.world.isThere = false;
  other.world.memberFor = () => undefined;
  other.opened[0]?.end('completed');
  expect(other.fate('mail')).toBe(rejected(required(visit('one'))));
});

it('counts what a call may take at all from its first start', async () => {
  await using room = await waitingRoom({ maxTimeoutMs: 100_000 });
  room.list({ name: 'mail' });
  room.call('mail');
  const { latestDeadline } = room.lane.sent(String(room.written[0]?.id))!;
  room.answer(0, 'error', required(visit('one')));
  expect(room.opened[0]?.subject.latestDeadline).toBe(latestDeadline);
  room.opened[0]?.end('completed');
  expect(room.lane.sent(String(room.written[1]?.id))?.latestDeadline).toBe(latestDeadline);
});

it('gives its place at the server to the next call while somebody visits, and lets a drain end', async () => {
  await using room = await waitingRoom({ maxInFlight: 1 });
  room.list({ name: 'mail' }, { name: 'next' });
  room.call('mail');
  room.call('next');
  expect(room.written).toHaveLength(1);
  room.answer(0, 'error', required(visit('one')));
  expect(room.written).toHaveLength(2);
  let drained = 0;
  room.lane.whenIdle(() => drained++);
  room.answer(1, 'error', required(visit('two')));
  expect([drained, room.opened.length]).toEqual([1, 2]);
});
