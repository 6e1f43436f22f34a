// Those who wait for a task to change: for its result, or to show a list anew. The daemon that changes a row wakes them: this
// one, or another one over the bus. What a bus that was down has not told is found by looking at the rows now and then.

import type { World } from '../world/world.ts';

export type Waiters = ReturnType<typeof createWaiters>;

const LONGEST_MS = 10_000;
const LOOK_MS = 2_000;

export function createWaiters(world: World) {
  const tasks = new Map<string, Set<() => void>>();
  const lists = new Set<() => void>();
  let version = 1;
  const stopLooking = world.every(LOOK_MS, () => {
    for (const id of [...tasks.keys()]) wakeTask(id);
  });

  function wakeTask(id: string): void {
    const waiting = tasks.get(id);
    tasks.delete(id);
    for (const wake of waiting ?? []) wake();
  }

  function touch(): void {
    version++;
    for (const wake of [...lists]) wake();
  }

  return {
    /** The row of that task is another. */
    wake(id: string): void {
      wakeTask(id);
      touch();
    },
    /** Resolves when the task may have changed; rejects when the signal says so. */
    next(id: string, signal?: AbortSignal): Promise<void> {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const waiting = tasks.get(id) ?? new Set();
        const wake = (): void => {
          signal?.removeEventListener('abort', giveUp);
          resolve();
        };
        const giveUp = (): void => {
          waiting.delete(wake);
          if (waiting.size === 0 && tasks.get(id) === waiting) tasks.delete(id);
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        tasks.set(id, waiting.add(wake));
      });
    },
    get version() {
      return version;
    },
    async changed(since: number): Promise<void> {
      if (since !== version) return;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          giveUp();
          lists.delete(wake);
          resolve();
        };
        const giveUp = world.after(LONGEST_MS, wake);
        lists.add(wake);
      });
    },
    touch,
    close(): void {
      stopLooking();
      for (const id of [...tasks.keys()]) wakeTask(id);
      touch();
    },
  };
}
