// All deadlines of all requests in one wheel with one timer: deadlines are data, a timer for each would cost more than
// the call. The clock is monotonic, so that a jump of the wall clock ends nothing.

import { realWorld, type World } from '../world/world.ts';

/** An item holds its own place, so that it is put in and taken out without a search, and nothing is made for it. */
export type Due = { deadline: number; slot: number; dueBefore: Due | undefined; dueAfter: Due | undefined };
export type Deadlines<T extends Due> = {
  add(item: T): void;
  remove(item: T): void;
  /** The item's deadline may be earlier now. */
  reset(item: T): void;
  readonly size: number;
};

const TICK_MS = 20;
/** One turn of the wheel: 82 seconds, longer than most calls may take. What is due later stays where it is for another turn. */
const SLOTS = 4_096;
const NOWHERE = -1;

export const now = (): number => realWorld.now();

/** `onDue` is told of an item at most one tick late, never early. Moving `deadline` later needs no word to the wheel. */
export function createDeadlines<T extends Due>(onDue: (item: T) => void, world: World = realWorld): Deadlines<T> {
  /** The first item of each slot; the others hang on it. */
  const wheel: (Due | undefined)[] = Array.from({ length: SLOTS }, () => undefined);
  let size = 0;
  let next = 0;
  let stop: (() => void) | undefined;

  function add(item: T): void {
    if (!stop) {
      next = Math.max(next, Math.floor(world.now() / TICK_MS)); // first, or an item already due would land in the past
      stop = world.every(TICK_MS, turn);
    }
    put(item);
    size++;
  }

  function put(item: T): void {
    item.slot = Math.max(Math.ceil(item.deadline / TICK_MS), next);
    const at = item.slot % SLOTS;
    const first = wheel[at];
    if (first) first.dueBefore = item;
    item.dueAfter = first;
    wheel[at] = item;
  }

  function remove(item: T): void {
    if (item.slot === NOWHERE) return;
    const { dueBefore, dueAfter } = item;
    if (dueBefore) dueBefore.dueAfter = dueAfter;
    else wheel[item.slot % SLOTS] = dueAfter;
    if (dueAfter) dueAfter.dueBefore = dueBefore;
    item.dueBefore = undefined;
    item.dueAfter = undefined;
    item.slot = NOWHERE;
    size--;
  }

  function turn(): void {
    const current = Math.floor(world.now() / TICK_MS);
    while (next <= current && size > 0) {
      const at = next++; // an item that is added from here on goes into a later slot than the one being emptied
      for (const item of itemsOf(at)) settle(item, at);
    }
    if (size > 0) return;
    // Only here: a caller that waits for each answer would start and stop the timer with every call.
    stop?.();
    stop = undefined;
  }

  /** In the order in which they were added. */
  function itemsOf(slot: number): T[] {
    const items: T[] = [];
    for (let item = wheel[slot % SLOTS]; item; item = item.dueAfter) if (item.slot === slot) items.push(item as T);
    return items.reverse();
  }

  function settle(item: T, at: number): void {
    if (item.slot !== at) return; // the end of an earlier item of this turn has already ended this one
    const isDue = item.deadline <= world.now();
    remove(item);
    if (isDue) onDue(item);
    else add(item);
  }

  return {
    add,
    remove,
    reset(item) {
      remove(item);
      add(item);
    },
    get size() {
      return size;
    },
  };
}
