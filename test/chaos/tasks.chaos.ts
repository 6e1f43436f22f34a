// The long run of tasks: `npm run chaos`, a thousand deaths unless TROUPE_CHAOS_ROUNDS says otherwise.

import { expect, it } from 'vitest';
import { chosenSeed } from './random.ts';
import { tasksChaos } from './tasks-rounds.ts';

const rounds = Number(process.env.TROUPE_CHAOS_ROUNDS ?? 1_000);

it(`keeps every promise of tasks over ${rounds} deaths`, async () => {
  const summary = await tasksChaos({ seed: chosenSeed(), rounds });
  expect(summary.rounds).toBeGreaterThanOrEqual(rounds);
}, 86_400_000);
