// What readers leave unread waits in our memory. Each may leave some, and all together no more than a bound: beyond it those
// that leave most are let go.

import type { Writable } from 'node:stream';

/** So little is not counted: every connection may have it. */
const LITTLE = 1024 * 1024;
const MOST_TOGETHER = 256 * 1024 * 1024;

/** Those that have more than a little unread, or once had. */
const slow = new Set<Writable>();

/** Whether a reader has left more than `most` unread, or so much that there is no memory for all who do not read. */
export function leavesTooMuch(stream: Writable, most: number, together = MOST_TOGETHER): boolean {
  const unread = stream.writableLength;
  if (unread <= LITTLE) return false;
  if (!slow.has(stream)) {
    slow.add(stream);
    stream.once('close', () => slow.delete(stream));
  }
  if (unread > most) return true;
  let [all, count] = [0, 0];
  for (const each of slow) {
    if (each.destroyed || each.writableLength <= LITTLE) continue;
    all += each.writableLength;
    count++;
  }
  return all > together && unread * count >= all;
}
