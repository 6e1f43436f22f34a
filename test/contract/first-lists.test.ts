// Waiting for the first list of a server, with a real catalog and a clock that only the test moves.

import { expect, it } from 'vitest';
import type { Member } from '../../src/servers/member.ts';
import { createFirstLists } from '../../src/sessions/lists.ts';
import { catalog, entriesOf } from '../support/catalog.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

async function stage(state: Member['state'] = 'opening') {
  const world = simulatedWorld();
  const lists = await catalog();
  const woken: string[] = [];
  const fleet = { want: ({ name }: Member) => void woken.push(name) };
  const first = createFirstLists({ world, fleet, catalog: lists });
  const member = { name: 's', server: 's', state, why: '' } as Member;
  const done: string[] = [];
  const ask = (kind: 'tools' | 'prompts' = 'tools') =>
    first.wait(member, kind)?.then(
      () => done.push(kind),
      ({ message }) => done.push(message),
    );
  return {
    ...{ world, lists, woken, first, member, done, ask },
    set: async (kind: 'tools' | 'prompts') => lists.set('s', kind, await entriesOf(kind, [{ name: 'one' }])),
    async [Symbol.asyncDispose]() {
      first.close();
      await lists[Symbol.asyncDispose]();
    },
  };
}
const settled = () => new Promise(setImmediate);

it('ends when that list has been read, for all who wait for it', async () => {
  await using s = await stage();
  const both = [s.ask(), s.ask()];
  await s.set('prompts');
  await settled();
  expect(s.done).toEqual([]);
  await s.set('tools');
  await Promise.all(both);
  expect(s.done).toEqual(['tools', 'tools']);
  expect(s.ask()).toBeUndefined();
});

it.each([
  ['failed', 'server s is failed; troupe start s'],
  ['stopped', 'server s is stopped; troupe start s'],
  ['needs login', 'server s needs login'],
] as const)('ends when the server is %s, and says so', async (state, why) => {
  await using s = await stage();
  const waiting = s.ask();
  s.first.changed();
  await settled();
  expect(s.done).toEqual([]);
  s.member.state = state;
  s.first.changed();
  await waiting;
  await s.ask(); // and does not begin again
  expect(s.done).toEqual([why, why]);
});

it('wakes a server that is asleep, also one that falls asleep meanwhile', async () => {
  await using s = await stage('asleep');
  const waiting = s.ask();
  expect(s.woken).toEqual(['s']);
  s.member.state = 'opening';
  s.first.changed();
  expect(s.woken).toEqual(['s']);
  s.member.state = 'asleep';
  s.first.changed();
  expect(s.woken).toEqual(['s', 's']);
  await s.set('tools');
  await waiting;
});

it.each([
  ['opening', 'server s is opening; it is restarting, try again'],
  ['ready', 'server s has not said which tools it has; try again'],
] as const)('lasts fifteen seconds at most, also while the server is %s', async (state, why) => {
  await using s = await stage(state);
  void s.ask();
  await s.world.pass(14_999);
  expect(s.done).toEqual([]);
  await s.world.pass(1);
  await settled();
  expect(s.done).toEqual([why]);
});
