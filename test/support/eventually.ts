// Waits for a fact instead of sleeping: asks again until the check holds, or fails with the check's own complaint.

import { setTimeout as sleep } from 'node:timers/promises';

/** What takes long is asked less often: on a small machine the asking would take the time of what is waited for. */
const SHORTEST_MS = 5;
const LONGEST_MS = 50;

/**
 * The check holds when it neither throws nor returns `false`, so both `expect(…)` and a plain comparison can be asked.
 * Its value is returned.
 */
export async function eventually<Value>(check: () => Value | Promise<Value>, timeoutMs = 5_000): Promise<Value> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = SHORTEST_MS; ; waitMs = Math.min(waitMs * 1.3, LONGEST_MS)) {
    const answer = await ask(check);
    if (answer.holds) return answer.value;
    if (performance.now() > deadline)
      throw answer.complaint ?? new Error(`still false after ${timeoutMs} ms: ${check}`);
    await sleep(waitMs);
  }
}

type Answer<Value> = { holds: true; value: Value } | { holds: false; complaint?: unknown };

async function ask<Value>(check: () => Value | Promise<Value>): Promise<Answer<Value>> {
  try {
    const value = await check();
    return value === false ? { holds: false } : { holds: true, value };
  } catch (complaint) {
    return { holds: false, complaint };
  }
}
