// While megabytes pass by a small heap, V8 marks it at once; else as it always does.

import { expect, it } from 'vitest';
import { watchBytes } from '../../src/world/collector.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const MIB = 2 ** 20;

function house(usedBytes = MIB) {
  const world = simulatedWorld();
  const heap = { live: usedBytes, isAtOnce: false };
  const markAtOnce = (isWanted: boolean) => {
    heap.isAtOnce = isWanted;
  };
  const passes = watchBytes(world, { usedBytes: () => heap.live, markAtOnce });
  return { world, heap, passes };
}

it('marks at once as soon as much has passed within a second, and not when it took longer', async () => {
  const { world, heap, passes } = house();
  passes(3 * MIB);
  await world.pass(1_000);
  passes(3 * MIB);
  expect(heap.isAtOnce).toBe(false);
  passes(MIB);
  expect(heap.isAtOnce).toBe(true);
});

it('is as it was after ten seconds with little, and begins again', async () => {
  const { world, heap, passes } = house();
  passes(4 * MIB);
  await world.pass(5_500);
  passes(4 * MIB);
  await world.pass(10_000);
  expect(heap.isAtOnce).toBe(true);
  await world.pass(1_000);
  expect(heap.isAtOnce).toBe(false);
  passes(4 * MIB);
  expect(heap.isAtOnce).toBe(true);
});

it('leaves a large heap alone, also one that grows meanwhile', async () => {
  const { world, heap, passes } = house(64 * MIB);
  passes(4 * MIB);
  expect(heap.isAtOnce).toBe(false);
  heap.live = MIB;
  await world.pass(1_000);
  expect(heap.isAtOnce).toBe(true);
  heap.live = 64 * MIB;
  await world.pass(1_000);
  expect(heap.isAtOnce).toBe(false);
});
