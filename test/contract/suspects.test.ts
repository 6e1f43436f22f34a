// Which calls are suspected of ending their server, with a clock that only the test moves.

import { expect, it } from 'vitest';
import { Suspects } from '../../src/servers/suspects.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const call = (name: string, meta?: object) => ({
  method: 'tools/call',
  params: Buffer.from(JSON.stringify({ name, arguments: {}, ...(meta && { _meta: meta }) })),
});
const poison = call('poison');

it('blames a call that was alone, or there before, and holds it guilty after the second death', () => {
  const suspects = new Suspects(simulatedWorld());
  expect([suspects.died([poison, call('a')]), suspects.isGuilty(poison)]).toEqual([false, false]);
  expect([suspects.died([poison, call('b')]), suspects.isGuilty(poison)]).toEqual([true, true]);
  expect([call('a'), call('b')].map((each) => suspects.isGuilty(each))).toEqual([false, false]);
  expect(suspects.died([call('c')])).toBe(true);
  expect(suspects.isGuilty(call('c'))).toBe(false);
});

it('knows a call again whatever its caller says beside it', () => {
  const suspects = new Suspects(simulatedWorld());
  for (const progressToken of [1, 2]) suspects.died([call('poison', { progressToken })]);
  expect(suspects.isGuilty(call('poison', { progressToken: 3 }))).toBe(true);
});

it('acquits a call that was answered, and forgets all when somebody has mended the server', () => {
  const suspects = new Suspects(simulatedWorld());
  suspects.died([poison, call('poll')]);
  suspects.acquit(call('poll'));
  suspects.died([poison, call('poll')]);
  expect([poison, call('poll')].map((each) => suspects.isGuilty(each))).toEqual([true, false]);
  suspects.clear();
  expect([suspects.size, suspects.isGuilty(poison)]).toEqual([0, false]);
});

it('suspects a call that was given up for half a minute, unless it is answered after all', async () => {
  const world = simulatedWorld();
  const suspects = new Suspects(world);
  const process = suspects.ofProcess();
  process.add('1', call('answered'));
  process.add('2', poison);
  process.answered('1');
  await world.pass(29_999);
  expect([process.recent().length, suspects.died([], process.recent())]).toEqual([1, true]);
  suspects.died([poison]);
  expect([poison, call('answered')].map((each) => suspects.isGuilty(each))).toEqual([true, false]);
  await world.pass(1);
  expect([process.recent(), suspects.died([], process.recent())]).toEqual([[], false]);
});

it('forgets after ten minutes, and the oldest when there are too many', async () => {
  const world = simulatedWorld();
  const suspects = new Suspects(world);
  suspects.died([poison]);
  suspects.died([poison]);
  await world.pass(599_999);
  expect(suspects.isGuilty(poison)).toBe(true);
  await world.pass(1);
  expect([suspects.isGuilty(poison), suspects.size]).toEqual([false, 0]);
  for (let index = 0; index < 1_000; index++) suspects.died([call(`${index}`)]);
  expect(suspects.size).toBe(256);
});
