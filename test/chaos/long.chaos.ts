// The long run: `npm run chaos`, three hundred rounds unless TROUPE_CHAOS_ROUNDS says otherwise.

import { expect, it } from 'vitest';
import { chosenSeed } from './random.ts';
import { chaos } from './rounds.ts';

const rounds = Number(process.env.TROUPE_CHAOS_ROUNDS ?? 300);

it(`keeps its promises over ${rounds} rounds of kill -9`, async () => {
  const summary = await chaos({ seed: chosenSeed(), rounds });
  expect(summary.rounds).toBe(rounds);
}, 86_400_000);
