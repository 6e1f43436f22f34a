// A world for tests: time passes only when the test says so, and chance is a seed. What is due at the same moment happens in
// the order in which it was asked for; between two moments everything that waits for a promise gets its turn.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { World } from '../../src/world/world.ts';
import { random } from '../chaos/random.ts';

export type SimulatedWorld = World & {
  /** Lets that much time pass, timer by timer. */
  pass(ms: number): Promise<void>;
};

type Timer = { at: number; readonly order: number; readonly everyMs: number | undefined; readonly work: () => void };

export function simulatedWorld(seed = 1): SimulatedWorld {
  const timers = new Set<Timer>();
  const chance = random(seed);
  let now = 0;
  let order = 0;

  function add(ms: number, work: () => void, everyMs?: number): () => void {
    const timer = { at: now + Math.max(0, ms), order: order++, everyMs, work };
    timers.add(timer);
    return () => timers.delete(timer);
  }

  return {
    now: () => now,
    date: () => 1_700_000_000_000 + now,
    after: (ms, work) => add(ms, work),
    every: (ms, work) => add(ms, work, ms),
    random: (count) => Buffer.from(Array.from({ length: count }, () => chance.between(0, 255))),
    async pass(ms) {
      const until = now + ms;
      for (;;) {
        await nextTurn();
        const [next] = [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at || a.order - b.order);
        if (!next) break;
        now = next.at;
        if (next.everyMs === undefined) timers.delete(next);
        else next.at += next.everyMs;
        next.work();
      }
      now = until;
    },
  };
}
