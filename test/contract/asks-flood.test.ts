// A server that asks very much at once: what that costs is spread over many turns of the event loop and has a bound, so that the
// calls of others pass in between. What is counted is the work of a turn, not its time.

import { expect, it } from 'vitest';
import { createPace } from '../../src/asks/pace.ts';
import { askStage } from '../support/asks.ts';
import { eventually } from '../support/eventually.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

it('a few steps are made at once, all others in later turns, in their order, and each server gets its turn', async () => {
  const world = simulatedWorld();
  const done: string[] = [];
  const turns: number[] = [];
  const counted = (ms: number, work: () => void) =>
    world.after(ms, () => {
      const before = done.length;
      work();
      turns.push(done.length - before);
    });
  const pace = createPace<string>(3, { after: counted });
  const run = (key: string, n: number) => pace.run(key, () => void done.push(`${key}${n}`));
  for (let n = 1; n <= 7; n++) run('a', n);
  run('b', 1);
  expect(done).toEqual(['a1', 'a2', 'a3']);
  await world.pass(10);
  expect(turns).toEqual([3, 2, 0]);
  expect(done).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'a5', 'a6', 'a7']);
  run('c', 1);
  expect(done.at(-1)).toBe('c1'); // at once again
});

it('of 20,000 questions few are opened in one turn and not many in all; the rest are refused, and none is left without a word', async () => {
  await using s = await askStage({ canAnswer: false });
  const request = s.call();
  for (let n = 0; n < 20_000; n++) s.ask(`q${n}`);
  expect(s.asks.count()).toBeLessThanOrEqual(8);
  const refused = () => s.replies.filter(({ error }) => error?.code === -32603).length;
  expect(refused()).toBeGreaterThanOrEqual(19_750);
  await eventually(() => s.asks.count() + refused() === 20_000);
  expect(s.asks.count()).toBe(250);
  s.lane.answer(request.id, 'result', Buffer.from('{}'));
  await eventually(() => s.replies.length === 20_000);
  expect([s.asks.count(), new Set(s.replies.map(({ id }) => id)).size, s.trouble]).toEqual([0, 20_000, []]);
  s.call('next');
  s.ask('again');
  await s.theAsk(); // there is room again
});

it('a question whose call ends before its turn has come is answered, and nobody is asked', async () => {
  await using s = await askStage({ canAnswer: false });
  const request = s.call();
  for (let n = 0; n < 20; n++) s.ask(`q${n}`);
  const opened = s.asks.count();
  s.lane.answer(request.id, 'result', Buffer.from('{}'));
  expect(opened).toBeLessThan(20);
  expect(s.replies.map(({ result }) => result?.action)).toEqual(Array.from({ length: 20 }, () => 'cancel'));
  await eventually(() => s.closed.length === opened);
  expect([s.asks.count(), s.asks.inbox.list()]).toEqual([0, []]);
});
