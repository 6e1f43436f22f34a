// What is kept by a key only while a call is in flight: a Map whose garbage does not grow. A Map that things enter and leave
// makes itself anew every so often, and V8 links the table it leaves to the next one. When a full collection has once moved a
// table among the old, every later one hangs on it with all that it held, until the next full collection: nearly every call
// then survives the young generation, and is copied twice. What is in the Map here is a cell, emptied when its key leaves.
// A Map that becomes empty even makes itself anew each time, so there is none while there are few: each of a thousand sessions,
// or of hundreds of servers, mostly has a single call.

import { Queue } from './queue.ts';

type Cell<Key, Value> = {
  readonly key: Key;
  value: Value | undefined;
  previous: Cell<Key, Value> | undefined;
  next: Cell<Key, Value> | undefined;
};

/** So many are found by looking at each. */
const FEW = 4;

export class Transients<Key, Value> implements Iterable<Value> {
  readonly #cells = new Queue<Cell<Key, Value>>();
  /** There from when they were more than a few until there is none. */
  #byKey: Map<Key, Cell<Key, Value>> | undefined;

  get size(): number {
    return this.#cells.length;
  }

  get(key: Key): Value | undefined {
    return this.#find(key)?.value;
  }

  has(key: Key): boolean {
    return this.#find(key) !== undefined;
  }

  /** A value that the key had is replaced. */
  set(key: Key, value: Value): void {
    this.delete(key);
    const cell: Cell<Key, Value> = { key, value, previous: undefined, next: undefined };
    this.#cells.push(cell);
    if (this.#byKey) this.#byKey.set(key, cell);
    else if (this.#cells.length > FEW) this.#byKey = new Map(Array.from(this.#cells, (each) => [each.key, each]));
  }

  delete(key: Key): boolean {
    const cell = this.#find(key);
    if (!cell) return false;
    cell.value = undefined;
    this.#cells.remove(cell);
    if (this.#cells.length === 0) this.#byKey = undefined;
    else this.#byKey?.delete(key);
    return true;
  }

  /** In the order in which they came. */
  values(): Value[] {
    return Array.from(this.#cells, ({ value }) => value as Value);
  }

  /** Over those that are there now, whatever leaves meanwhile. */
  [Symbol.iterator](): Iterator<Value> {
    return this.values().values();
  }

  #find(key: Key): Cell<Key, Value> | undefined {
    if (this.#byKey) return this.#byKey.get(key);
    let cell = this.#cells.first;
    while (cell && cell.key !== key) cell = cell.next;
    return cell;
  }
}
