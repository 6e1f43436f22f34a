// The healthy neighbour: a steady stream of calls to the server `echo` of a daemon, while something else misbehaves.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Daemon } from './daemon.ts';

/** Between two calls of one worker: a stream, not a flood, for the sinner needs the processor too. */
const PACE_MS = 3;
const ENOUGH = 20;

/** Does the work while calls to `echo` go on; every one of them must come back with its own message. */
export async function whileNeighbourWorks<Value>(d: Daemon, work: () => Promise<Value>): Promise<Value> {
  const wrong: string[] = [];
  let count = 0;
  let isOver = false;
  const worker = async (): Promise<void> => {
    while (!isOver || count < ENOUGH) {
      const message = `message ${++count}`;
      try {
        const reply = await d.request('troupe.call.echo.echo', { message }, { timeout: 10_000 });
        if (reply.data?.content?.[0]?.text !== message) wrong.push(reply.text);
      } catch (error) {
        wrong.push(`${message}: ${error}`);
      }
      await sleep(PACE_MS);
    }
  };
  const workers = [worker(), worker()];
  try {
    return await work();
  } finally {
    isOver = true;
    await Promise.all(workers);
    expect(wrong).toEqual([]);
  }
}
