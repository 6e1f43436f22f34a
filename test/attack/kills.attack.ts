// kill -9 of servers, brokers and daemons while tasks are made, watched, fetched and cancelled: none that was acknowledged is
// lost, none runs twice. TROUPE_ATTACK_ROUNDS=40 makes it more deaths than ten.

import { expect } from 'vitest';
import { chosenSeed } from '../chaos/random.ts';
import { tasksChaos } from '../chaos/tasks-rounds.ts';
import { apart, surface } from './kit.ts';

const ROUNDS = Number(process.env.TROUPE_ATTACK_ROUNDS ?? 10);

surface('kills', {
  'acknowledged tasks': apart(
    async ({ attempt }) =>
      attempt(`${ROUNDS} deaths`, async () => {
        const summary = await tasksChaos({ seed: chosenSeed(), rounds: ROUNDS });
        expect(summary.rounds).toBeGreaterThanOrEqual(ROUNDS);
        expect(summary.completed).toBeGreaterThan(0);
      }),
    300 + 10 * ROUNDS,
  ),
});
