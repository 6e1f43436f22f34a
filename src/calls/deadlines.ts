// All deadlines of all requests in one wheel with one timer: deadlines are data, a timer for each would cost more than
// the call. The clock is monotonic, so that a jump of the wall clock ends nothing.

export type Due = { deadline: number; slot: number };
export type Deadlines<T extends Due> = { add(item: T): void; remove(item: T): void; readonly size: number };

const TICK_MS = 20;
const NOWHERE = -1;

export const now = (): number => performance.now();

/** `onDue` is told of an item at most one tick late, never early. Moving `deadline` later needs no word to the wheel. */
export function createDeadlines<T extends Due>(onDue: (item: T) => void): Deadlines<T> {
  const slots = new Map<number, Set<T>>();
  let size = 0;
  let next = 0;
  let timer: NodeJS.Timeout | undefined;

  function add(item: T): void {
    if (!timer) {
      next = Math.max(next, Math.floor(now() / TICK_MS)); // first, or an item already due would land in the past
      timer = setInterval(turn, TICK_MS);
      timer.unref();
    }
    put(item);
    size++;
  }

  function put(item: T): void {
    item.slot = Math.max(Math.ceil(item.deadline / TICK_MS), next);
    const slot = slots.get(item.slot);
    if (slot) slot.add(item);
    else slots.set(item.slot, new Set([item]));
  }

  function remove(item: T): void {
    const slot = slots.get(item.slot);
    if (!slot?.delete(item)) return;
    if (slot.size === 0) slots.delete(item.slot);
    item.slot = NOWHERE;
    size--;
  }

  function turn(): void {
    const current = Math.floor(now() / TICK_MS);
    while (next <= current && size > 0) {
      const at = next++; // who is added from here on goes into a later slot than the one being emptied
      const slot = slots.get(at);
      if (slot) for (const item of [...slot]) settle(item, at);
    }
    if (size > 0) return;
    // Only here: a caller that waits for each answer would start and stop the timer with every call.
    clearInterval(timer);
    timer = undefined;
  }

  function settle(item: T, at: number): void {
    if (item.slot !== at) return; // an earlier one of this turn already ended it
    const due = item.deadline <= now();
    remove(item);
    if (due) onDue(item);
    else add(item);
  }

  return {
    add,
    remove,
    get size() {
      return size;
    },
  };
}
