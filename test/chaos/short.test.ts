// A short run of chaos, part of every test run. `npm run chaos` does a hundred rounds.

import { expect, it } from 'vitest';
import { chosenSeed } from './random.ts';
import { chaos } from './rounds.ts';

it('answers once, executes once and leaves nothing behind, whatever is killed under load', async () => {
  const summary = await chaos({ seed: chosenSeed(), rounds: 20, maxMs: 25_000 });
  expect(summary.answered).toBeGreaterThan(100);
}, 120_000);
