// A daemon that is stopped and comes back writes nothing stale. Two rounds, in which each of two daemons is stopped once;
// `npm run chaos` does a hundred.

import { expect, test } from 'vitest';
import { stoppedRounds } from '../chaos/tasks-stopped.ts';

test('who was stopped loses its tasks to another daemon, and does nothing with them when it comes back', async () => {
  const times = await stoppedRounds(2);
  console.log(`adopted and ended ${times.join(', ')} ms after SIGSTOP of the owner`);
  expect(times).toHaveLength(2);
}, 300_000);
