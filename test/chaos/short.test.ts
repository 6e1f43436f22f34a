// A short run of chaos, part of every test run: each kind of death, and a few more. `npm run chaos` does three hundred rounds.

import { expect, it } from 'vitest';
import { chosenSeed } from './random.ts';
import { chaos } from './rounds.ts';

it('answers once, executes once and leaves nothing behind, whatever is killed under load', async () => {
  const summary = await chaos({ seed: chosenSeed(), rounds: 10 });
  expect(summary.answered).toBeGreaterThan(50);
}, 300_000);
