// Work that servers cause, done a little at a time: what one of them asks for in a burst is spread over many turns of the event
// loop, so that calls of others pass in between, and each server gets its turn.

import type { World } from '../world/world.ts';

export type Pace<Key> = {
  /** Does it now if there is room in this turn and none of its key waits; else in a later turn, in its order. */
  run(key: Key, work: () => void): void;
};

export function createPace<Key>(perTurn: number, { after }: Pick<World, 'after'>): Pace<Key> {
  /** In the order of their turns. */
  const waiting = new Map<Key, (() => void)[]>();
  let left = perTurn;

  /** The turn is over when the event loop has come round. */
  function spend(work: () => void): void {
    if (left === perTurn) after(0, nextTurn);
    left--;
    work();
  }

  function nextTurn(): void {
    left = perTurn;
    while (left > 0) {
      const [next] = waiting;
      if (!next) return;
      const [key, queue] = next;
      const work = queue.shift();
      waiting.delete(key);
      if (queue.length > 0) waiting.set(key, queue);
      if (work) spend(work);
    }
  }

  return {
    run(key, work) {
      const queue = waiting.get(key);
      if (queue) queue.push(work);
      else if (left > 0) spend(work);
      else waiting.set(key, [work]);
    },
  };
}
