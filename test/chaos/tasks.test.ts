// Some deaths of each kind while four host processes work with tasks, part of every test run. `npm run chaos` takes a
// thousand.

import { expect, it } from 'vitest';
import { chosenSeed } from './random.ts';
import { tasksChaos } from './tasks-rounds.ts';

it('loses no acknowledged task, executes none twice and leaves none unfinished, whatever is killed', async () => {
  const summary = await tasksChaos({ seed: chosenSeed(), rounds: 15 });
  expect(summary.completed).toBeGreaterThan(10);
}, 300_000);
