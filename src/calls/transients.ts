// What is kept by a key only while a call is in flight: a Map whose garbage does not grow. A Map that things enter and leave
// makes itself anew every so often, and V8 links the table it leaves to the next one. When a full collection has once moved a
// table among the old, every later one hangs on it with all that it held, until the next full collection: nearly every call
// then survives the young generation, and is copied twice. What is in the Map here is a cell, emptied when its key leaves.

type Cell<Value> = { value: Value | undefined };

export class Transients<Key, Value> {
  readonly #cells = new Map<Key, Cell<Value>>();

  get size(): number {
    return this.#cells.size;
  }

  get(key: Key): Value | undefined {
    return this.#cells.get(key)?.value;
  }

  has(key: Key): boolean {
    return this.#cells.has(key);
  }

  /** A value that the key had is replaced. */
  set(key: Key, value: Value): void {
    this.delete(key);
    this.#cells.set(key, { value });
  }

  delete(key: Key): boolean {
    const cell = this.#cells.get(key);
    if (!cell) return false;
    cell.value = undefined;
    return this.#cells.delete(key);
  }

  /** In the order in which they came. */
  values(): Value[] {
    return Array.from(this.#cells.values(), ({ value }) => value as Value);
  }
}
