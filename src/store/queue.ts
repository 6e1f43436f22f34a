// The write-behind queue of the main thread: groups statements into batches, one of which is under way at a time.
// Order is kept, but for what asks to be first. Whoever waits for a statement is told exactly once how it ended.

import { TroupeError } from '../protocol/failures.ts';
import type { Findings } from './messages.ts';
import type { SizedOp } from './operation.ts';
import type { Op, WriteName } from './statements.ts';

const LINGER_MS = 100;
const ENOUGH_OPS = 1_024;
const BATCH_OPS = 4_096;
const BATCH_BYTES = 1_048_576;

export type Waiter = { readonly since: number; resolve(hasChanged: boolean): void; reject(error: TroupeError): void };
type Entry = { readonly op: SizedOp | null; readonly waiter: Waiter | undefined };
/** Before all that wait: for what nothing else depends on, and what is worthless when it comes late. */
export type Place = 'first';
export type Queue = ReturnType<typeof createQueue>;

export function createQueue(
  post: (ops: readonly (Op | null)[]) => void,
  onFault: (name: WriteName, message: string) => void,
) {
  let waiting: Entry[] = [];
  let underWay: Entry[] | undefined;
  let postedAt = 0;
  let bytes = 0;
  let isDue = false; // somebody waits, or enough has gathered, or it has lingered long enough
  let isHeld = false; // the disk refused the last batch: nothing is posted until the next try
  let linger: NodeJS.Timeout | undefined;

  /** Without an operation it only marks a place: its waiter is told when all before it is recorded. */
  function add(op: SizedOp | null, waiter?: Waiter, place?: Place): void {
    if (place === 'first') waiting.unshift({ op, waiter });
    else waiting.push({ op, waiter });
    bytes += op?.bytes ?? 0;
    if (waiter) {
      if (!isDue) queueMicrotask(pump);
      isDue = true;
    } else if (waiting.length >= ENOUGH_OPS) {
      isDue = true;
      pump();
    } else if (!isDue) linger ??= setTimeout(due, LINGER_MS);
  }

  function due(): void {
    linger = undefined;
    isDue = true;
    pump();
  }

  function pump(): void {
    if (isDue && !isHeld && waiting.length > 0) postNext();
  }

  function postNext(): void {
    if (underWay) return;
    clearTimeout(linger);
    linger = undefined;
    underWay = waiting.splice(0, batchLength(waiting));
    isDue = waiting.length > 0;
    postedAt = performance.now();
    post(underWay.map((entry) => entry.op));
  }

  /** Tries the disk again, with an empty batch if there is nothing else to try it with. */
  function retry(): void {
    isHeld = false;
    postNext();
  }

  function done({ faults, unchanged }: Findings): void {
    const batch = underWay ?? [];
    underWay = undefined;
    for (const { index, message } of faults) fault(batch[index], message);
    for (const index of unchanged) batch[index]?.waiter?.resolve(false);
    for (const entry of batch) {
      bytes -= entry.op?.bytes ?? 0;
      entry.waiter?.resolve(true); // says nothing to those who were told already
    }
    pump();
  }

  function fault(entry: Entry | undefined, message: string): void {
    if (!entry?.op) return;
    const why = `The statement ${entry.op.name} was refused: ${message}.`;
    if (entry.waiter) entry.waiter.reject(new TroupeError('internal', why));
    else onFault(entry.op.name, why);
  }

  /** Nothing of the batch under way was recorded: it goes back to the front. */
  function undone(): void {
    waiting = [...(underWay ?? []), ...waiting];
    underWay = undefined;
    isHeld = true;
    isDue = true;
  }

  /** Takes out those who have waited since before `time`, so that a rejected commit is never recorded later. */
  function expire(time: number, error: TroupeError): void {
    const isOver = ({ waiter }: Entry) => waiter !== undefined && waiter.since < time;
    remove(waiting.filter(isOver), error);
    waiting = waiting.filter((entry) => !isOver(entry));
  }

  /** Gives everything up and returns how many statements nobody was waiting for. */
  function abandon(error: TroupeError): number {
    clearTimeout(linger);
    const all = [...(underWay ?? []), ...waiting];
    underWay = undefined;
    waiting = [];
    remove(all, error);
    return all.filter((entry) => !entry.waiter).length;
  }

  function remove(entries: readonly Entry[], error: TroupeError): void {
    for (const entry of entries) {
      bytes -= entry.op?.bytes ?? 0;
      entry.waiter?.reject(error);
    }
  }

  return {
    add,
    retry,
    done,
    undone,
    expire,
    abandon,
    ops: () => waiting.length + (underWay?.length ?? 0),
    bytes: () => bytes,
    /** How long the batch under way has been away. */
    awayMs: () => (underWay ? performance.now() - postedAt : 0),
  };
}

function batchLength(waiting: readonly Entry[]): number {
  let bytes = 0;
  let length = 0;
  for (const entry of waiting) {
    bytes += entry.op?.bytes ?? 0;
    if (length > 0 && (bytes > BATCH_BYTES || length >= BATCH_OPS)) break;
    length += 1;
  }
  return length;
}
