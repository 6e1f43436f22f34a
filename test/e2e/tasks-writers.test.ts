// Eight daemons on one database, for two seconds; `npm run chaos` lets them write for a minute.

import { expect, test } from 'vitest';
import { writers, written } from '../chaos/tasks-writers.ts';

test('eight processes write tasks at the same time, and no caller hears of the others', async () => {
  const found = await writers(2_000);
  console.log(written(found));
  expect(found.tasks).toBeGreaterThan(8);
}, 300_000);
