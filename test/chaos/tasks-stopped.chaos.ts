// A hundred rounds of SIGSTOP, adoption, SIGCONT: `npm run chaos`.

import { it } from 'vitest';
import { stoppedRounds } from './tasks-stopped.ts';

const ROUNDS = 100;

it(`writes nothing stale in ${ROUNDS} rounds of being stopped, robbed and resumed`, async () => {
  const times = (await stoppedRounds(ROUNDS)).sort((one, other) => one - other);
  console.log(`stopped: adopted and ended after ${times[ROUNDS / 2]} ms (median), ${times.at(-1)} ms (worst)`);
}, 86_400_000);
