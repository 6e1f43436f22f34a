// The requests that wait for their server, first come, first sent. Taking the first and taking one out of the middle are both
// cheap: a full queue in front of a slow server is exactly when there is no time to copy it.

/** An item holds its own links, so that it is found without a search. An item is in one queue at most. */
export type Linked<T> = { previous: T | undefined; next: T | undefined };

export class Queue<T extends Linked<T>> {
  first: T | undefined;
  length = 0;
  #last: T | undefined;

  push(item: T): void {
    item.previous = this.#last;
    if (this.#last) this.#last.next = item;
    else this.first = item;
    this.#last = item;
    this.length++;
  }

  unshift(item: T): void {
    item.next = this.first;
    if (this.first) this.first.previous = item;
    else this.#last = item;
    this.first = item;
    this.length++;
  }

  remove(item: T): void {
    if (item.previous) item.previous.next = item.next;
    else this.first = item.next;
    if (item.next) item.next.previous = item.previous;
    else this.#last = item.previous;
    item.previous = undefined;
    item.next = undefined;
    this.length--;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let item = this.first; item; item = item.next) yield item;
  }
}
