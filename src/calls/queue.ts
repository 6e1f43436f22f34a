// The requests that wait for their server, first come, first sent. Taking the first and forgetting one in the middle
// are both cheap: a full queue in front of a slow server is exactly when there is no time to copy it.

export type Queued = { isQueued: boolean };
export type Queue<T extends Queued> = {
  push(item: T): void;
  /** It has been first before, and is again. */
  unshift(item: T): void;
  /** Who is next; it stays where it is. */
  first(): T | undefined;
  shift(): T | undefined;
  /** The item ended while it waited. */
  forget(item: T): void;
  clear(): T[];
  readonly length: number;
};

export function createQueue<T extends Queued>(): Queue<T> {
  let items: T[] = [];
  let head = 0;
  let length = 0;

  function forget(item: T): void {
    item.isQueued = false;
    length--;
  }

  function first(): T | undefined {
    while (head < items.length && !items[head]?.isQueued) head++; // forgotten
    if (head > 1024 && head * 2 > items.length) {
      items = items.slice(head);
      head = 0;
    }
    return items[head];
  }

  return {
    forget,
    first,
    push(item) {
      item.isQueued = true;
      items.push(item);
      length++;
    },
    unshift(item) {
      item.isQueued = true;
      if (head > 0) items[--head] = item;
      else items.unshift(item);
      length++;
    },
    shift() {
      const item = first();
      if (!item) return undefined;
      head++;
      forget(item);
      return item;
    },
    clear() {
      const waiting = items.slice(head).filter((item) => item.isQueued);
      items = [];
      head = 0;
      for (const item of waiting) forget(item);
      return waiting;
    },
    get length() {
      return length;
    },
  };
}
