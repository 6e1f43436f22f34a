// Which server is told that its roots are others: by what it knew, what there is, and whether it has a session at all.

import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { Root } from '../../src/roots/root.ts';
import { createTelling } from '../../src/roots/telling.ts';
import type { Member } from '../../src/servers/member.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const [A, B] = [[{ uri: 'file:///a' }], [{ uri: 'file:///b' }]];

function stage() {
  const state = { list: A as Root[] };
  const world = simulatedWorld();
  const telling = createTelling(() => state.list, world);
  const member = { state: 'ready', logger: pino({ level: 'silent' }) } as Member;
  const told: string[] = [];
  const open = () =>
    telling.opened(
      member,
      (method) => void told.push(method),
      async () => void told.push('ping'),
    );
  /** The list is another, and the time of gathering goes by. */
  const become = async (list: Root[]) => {
    state.list = list;
    telling.look();
    await world.pass(100);
  };
  open();
  return { world, state, telling, member, told, open, become, [Symbol.dispose]: () => telling.close() };
}

it('is told of each change once, after the time of gathering', async () => {
  using s = stage();
  s.state.list = B;
  s.telling.look();
  await s.world.pass(99);
  expect(s.told).toEqual([]);
  await s.world.pass(1);
  expect(s.told).toEqual(['notifications/roots/list_changed']);
  await s.become(B);
  expect(s.told).toHaveLength(1);
  await s.become(A);
  expect(s.told).toHaveLength(2);
});

it('is told nothing of what is again as it was', async () => {
  using s = stage();
  s.state.list = B;
  s.telling.look();
  await s.become(A);
  expect(s.told).toEqual([]);
});

it('is told nothing of what it was given meanwhile, but of what it was given before', async () => {
  using s = stage();
  s.state.list = B;
  s.telling.look();
  s.telling.asked(s.member, B);
  await s.world.pass(1_000);
  expect(s.told).toEqual([]);
  await s.become(A);
  expect(s.told).toHaveLength(1);
});

it.each(['opening', 'closing', 'waiting', 'failed', 'stopped', 'asleep', 'needs login'] as const)(
  'is told nothing after it was %s, until its next session is open',
  async (state) => {
    using s = stage();
    s.member.state = state;
    s.telling.moved(s.member);
    s.member.state = 'ready';
    await s.become(B); // it is up, but its new session is not open yet
    s.open();
    await s.become(B);
    expect(s.told).toEqual([]);
    await s.become(A);
    expect(s.told).toHaveLength(1);
  },
);

it('is still told while it works off its last calls, and by one voice after a session that was opened anew', async () => {
  using s = stage();
  s.member.state = 'draining';
  s.telling.moved(s.member);
  await s.become(B);
  s.state.list = A;
  s.telling.look();
  s.open(); // what was being gathered for the last session is no news to this one
  await s.world.pass(1_000);
  expect(s.told).toHaveLength(1);
  await s.become(B);
  expect(s.told).toHaveLength(2);
});

it('is told nothing once it is down, though nobody said so, be it while changes are gathered', async () => {
  using s = stage();
  s.state.list = B;
  s.telling.look();
  s.member.state = 'stopped';
  await s.world.pass(100);
  await s.become(A);
  s.member.state = 'ready';
  await s.become(B);
  expect(s.told).toEqual([]);
});

it('is told at once when a call waits, and has asked and read the answer before the call goes on', async () => {
  using s = stage();
  s.telling.asked(s.member, A);
  s.state.list = B;
  const settled = s.telling.settled(s.member)?.then(() => s.told.push('call'));
  expect(settled).toBeDefined();
  await s.world.pass(1);
  expect(s.told).toEqual([CHANGED]);
  s.telling.asked(s.member, B);
  await settled;
  expect(s.told).toEqual([CHANGED, 'ping', 'call']);
  expect(s.telling.settled(s.member)).toBeUndefined();
});

it('keeps no call waiting for a server that never asked, or for long for one that does not ask again', async () => {
  using s = stage();
  s.state.list = B;
  expect(s.telling.settled(s.member)).toBeUndefined();
  await s.world.pass(100);
  s.telling.asked(s.member, B);
  s.state.list = A;
  const settled = s.telling.settled(s.member)?.then(() => s.told.push('call'));
  await s.world.pass(499);
  expect(s.told.at(-1)).toBe(CHANGED);
  await s.world.pass(1);
  await settled;
  expect(s.told.at(-1)).toBe('call');
});

const CHANGED = 'notifications/roots/list_changed';
