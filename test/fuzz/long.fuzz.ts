// `npm run fuzz`: a million inputs for everything that takes some, or as many as fit into its time. FUZZ_INPUTS, FUZZ_SECONDS, FUZZ_SEED
// and FUZZ_TARGETS (names, with commas) change that; the summary is printed as it comes.

import { expect, it } from 'vitest';
import { chosenSeed } from '../chaos/random.ts';
import { house } from './house.ts';
import { fuzz } from './rounds.ts';
import { TARGETS } from './targets.ts';

const seed = Number(process.env.FUZZ_SEED ?? chosenSeed());
const inputs = Number(process.env.FUZZ_INPUTS ?? 1_000_000);
const seconds = Number(process.env.FUZZ_SECONDS ?? 600);
const names = process.env.FUZZ_TARGETS?.split(',');
const chosen = TARGETS.filter(({ name }) => !names || names.includes(name));

it.each(chosen.map((target) => [target.name, target]))(
  'fuzzes %s',
  async (_, target) => {
    await using home = await house();
    const summary = await fuzz(target, home, { seed, inputs, seconds, slowestMs: 1_000 });
    console.log(JSON.stringify(summary));
    expect(summary.inputs).toBeGreaterThan(0);
  },
  (seconds + 300) * 1000,
);
