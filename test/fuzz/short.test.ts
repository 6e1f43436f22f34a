// A short round of fuzzing, part of every test run: the corpus, and a few hundred inputs for everything that takes some.
// `npm run fuzz` tries a million each.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type House, house } from './house.ts';
import { fuzz } from './rounds.ts';
import { TARGETS } from './targets.ts';

const limits = { seed: Number(process.env.TROUPE_SEED ?? 20_261_118), inputs: 400, seconds: 5, slowestMs: 15_000 };
let home: House;

beforeAll(async () => {
  home = await house();
});
afterAll(() => home[Symbol.asyncDispose]());

it.each(TARGETS.map((target) => [target.name, target]))('takes whatever comes: %s', async (_, target) => {
  const summary = await fuzz(target, home, limits);
  expect(summary.neighbour).toBeGreaterThan(0);
});
