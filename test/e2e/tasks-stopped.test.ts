// A daemon that is stopped and comes back writes nothing stale. A few rounds, part of every test run; `npm run chaos` does a
// hundred.

import { expect, test } from 'vitest';
import { stoppedRounds } from '../chaos/tasks-stopped.ts';

test('who was stopped loses its tasks to another daemon, and does nothing with them when it comes back', async () => {
  const times = await stoppedRounds(3);
  console.log(`adopted and ended ${times.join(', ')} ms after SIGSTOP of the owner`);
  expect(times).toHaveLength(3);
}, 300_000);
