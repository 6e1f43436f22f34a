// How V8 collects garbage while megabytes pass by, be they few large answers or many small ones. It counts the memory of buffers
// like that of old objects, so buffers that live for milliseconds make it mark the whole heap, over and over, ahead of the
// shortage that it expects. The shortage does not come: a collection of young objects frees them. So while much passes, and the
// heap is so small that marking it at once is a short pause, V8 is told not to begin ahead of time (ADR 39).

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { realWorld, type World } from './world.ts';

const MIB = 2 ** 20;
/** So much within a look is many collections. */
const MUCH_BYTES = 4 * MIB;
const LOOK_MS = 1_000;
/** After so long with less than that all is as it was. */
const QUIET_MS = 10_000;
/** Marking takes about a millisecond for each MiB in use. */
const SMALL_HEAP_BYTES = 64 * MIB;

type Heap = {
  usedBytes(): number;
  /** Whether the heap is marked in one go when memory is short, or bit by bit ahead of that. */
  markAtOnce(isWanted: boolean): void;
};

const ownHeap: Heap = {
  usedBytes: () => getHeapStatistics().used_heap_size,
  markAtOnce: (isWanted) => setFlagsFromString(isWanted ? '--no-incremental-marking' : '--incremental-marking'),
};

/** So much was read to be handed on. */
export const bytesPass = watchBytes(realWorld, ownHeap);

export function watchBytes(world: World, heap: Heap): (bytes: number) => void {
  let passed = 0;
  let since = 0;
  let quietMs = 0;
  let stopLooking: (() => void) | undefined;
  let isAtOnce = false;

  function want(isWanted: boolean): void {
    if (isWanted === isAtOnce) return;
    isAtOnce = isWanted;
    heap.markAtOnce(isWanted);
  }
  const decide = (): void => want(heap.usedBytes() < SMALL_HEAP_BYTES);

  function look(): void {
    quietMs = passed < MUCH_BYTES ? quietMs + LOOK_MS : 0;
    passed = 0;
    if (quietMs < QUIET_MS) return decide();
    want(false);
    stopLooking?.();
    stopLooking = undefined;
  }

  return (bytes) => {
    if (!stopLooking && world.now() - since >= LOOK_MS) [since, passed] = [world.now(), 0];
    passed += bytes;
    if (stopLooking || passed < MUCH_BYTES) return;
    [quietMs, passed] = [0, 0];
    stopLooking = world.every(LOOK_MS, look);
    decide();
  };
}
