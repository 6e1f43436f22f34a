// The wheel of deadlines: nobody is told early, nobody is forgotten, and nothing ticks when nobody waits.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createDeadlines, type Due, now } from '../../src/calls/deadlines.ts';
import { eventually } from '../support/eventually.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

type Item = Due & { name: string; toldAt?: number };
const item = (name: string, ms: number): Item => ({
  name,
  deadline: now() + ms,
  slot: -1,
  dueBefore: undefined,
  dueAfter: undefined,
});

function wheel(onDue: (item: Item) => void = () => {}) {
  const told: Item[] = [];
  const deadlines = createDeadlines<Item>((due) => {
    due.toldAt = now();
    told.push(due);
    onDue(due);
  });
  return { deadlines, told, names: () => told.map(({ name }) => name) };
}

it('tells of each item once, never before its deadline', async () => {
  const { deadlines, told } = wheel();
  const items = [0, 1, 19, 20, 21, 45, 90, 90, 150].map((ms, at) => item(`${at}`, ms));
  for (const each of items) deadlines.add(each);
  expect(deadlines.size).toBe(items.length);
  await eventually(() => told.length === items.length);
  for (const { toldAt, deadline } of told) expect(toldAt).toBeGreaterThanOrEqual(deadline);
  expect(new Set(told).size).toBe(items.length);
  expect(deadlines.size).toBe(0);
});

it('tells of an item that was due before it came', async () => {
  const { deadlines, names } = wheel();
  deadlines.add(item('first', 5));
  await eventually(() => names().length === 1);
  const stopped = now();
  await eventually(() => now() > stopped + 300); // the wheel stands still meanwhile
  deadlines.add(item('late', -200));
  await eventually(() => names().includes('late'), 1_000);
});

it('does not tell of what was removed, and removing twice or what was never added does nothing', async () => {
  const { deadlines, names } = wheel();
  const [gone, kept] = [item('gone', 30), item('kept', 60)];
  deadlines.add(gone);
  deadlines.add(kept);
  deadlines.remove(gone);
  deadlines.remove(gone);
  deadlines.remove(item('stranger', 10));
  expect(deadlines.size).toBe(1);
  await eventually(() => names().length === 1);
  expect(names()).toEqual(['kept']);
});

it('needs no word of a deadline that moved later, however often it moves, alone or among others', async () => {
  for (const others of [0, 5]) {
    const { deadlines, told } = wheel();
    for (let at = 0; at < others; at++) deadlines.add(item('other', 10 * at));
    const moved = item('moved', 30);
    const until = now() + 250;
    deadlines.add(moved);
    await eventually(() => {
      if (now() < until) moved.deadline = now() + 80;
      return told.includes(moved);
    });
    expect(moved.toldAt).toBeGreaterThanOrEqual(moved.deadline);
    expect(moved.deadline).toBeGreaterThan(until);
    expect(deadlines.size).toBe(0);
  }
});

it('lets whoever is told remove and add others of the same moment', async () => {
  const victim = item('victim', 40);
  const born = item('born', -60);
  const { deadlines, names } = wheel(({ name }) => {
    if (name !== 'killer') return;
    deadlines.remove(victim);
    deadlines.add(born);
  });
  deadlines.add(item('killer', 1));
  victim.deadline = now() + 1;
  deadlines.add(victim);
  await eventually(() => names().includes('born'));
  expect(names()).toEqual(['killer', 'born']);
});

it('counts what is added and removed, in whatever order, and forgets nobody', async () => {
  const steps = fc.array(fc.tuple(fc.nat(60), fc.boolean()), { minLength: 1, maxLength: 40 });
  const property = fc.asyncProperty(steps, async (plan) => {
    const { deadlines, told } = wheel();
    const kept = new Set<Item>();
    for (const [ms, isRemoved] of plan) {
      const each = item('', ms - 20);
      deadlines.add(each);
      if (isRemoved) deadlines.remove(each);
      else kept.add(each);
    }
    expect(deadlines.size).toBe(kept.size);
    await eventually(() => told.length === kept.size);
    expect(new Set(told)).toEqual(kept);
  });
  await fc.assert(property, { numRuns: 12 });
});

it('tells of what is due turns of the wheel later, in the same place as what is due now', async () => {
  const world = simulatedWorld();
  const told: string[] = [];
  const deadlines = createDeadlines<Item>(({ name }) => told.push(name), world);
  const turnMs = 4_096 * 20;
  for (const turn of [2, 0, 1]) deadlines.add({ ...item(`${turn}`, 0), deadline: world.now() + 100 + turn * turnMs });
  await world.pass(140);
  expect(told).toEqual(['0']);
  await world.pass(turnMs - 60);
  expect(told).toEqual(['0']);
  await world.pass(60);
  expect(told).toEqual(['0', '1']);
  await world.pass(turnMs);
  expect(told).toEqual(['0', '1', '2']);
  expect(deadlines.size).toBe(0);
});
