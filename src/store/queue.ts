// The write-behind queue of the main thread: groups statements into batches, one of which is under way at a time.
// Order is kept, but for `first` statements. Every waiter is told exactly once how its statement ended.

import { TroupeError } from '../protocol/failures.ts';
import type { World } from '../world/world.ts';
import { LINGER_MS } from './audit.ts';
import type { Priority } from './port.ts';
import { arityOf, type Op, type Params, type Value, type WriteName } from './statements.ts';
import type { Findings } from './thread.ts';

const ENOUGH_OPS = 1_024;
const BATCH_OPS = 4_096;
const BATCH_BYTES = 1_048_576;
/** A larger statement would not fit into the memory of the writer thread, and would end it. */
const MAX_STATEMENT_BYTES = 33_554_432;

export type Waiter = { readonly since: number; resolve(hasChanged: boolean): void; reject(error: TroupeError): void };
type Manner = { readonly waiter?: Waiter; readonly priority?: Priority | undefined; readonly isDue?: boolean };
/** `weight`: how many there would be if it were not recorded. */
export type SizedOp = Op & { readonly bytes: number; readonly weight: number };
/** Without a statement it is a flush: its waiter is told when all before it is recorded. */
type Entry = { readonly op: SizedOp | null; readonly waiter: Waiter | undefined };

export type QueuePorts = {
  readonly world: World;
  /** Gives a batch to the writer, which answers by `done` or `undone`. */
  readonly post: (ops: readonly (Op | null)[]) => void;
  /** A statement without a waiter was refused. */
  readonly onFault: (op: SizedOp, message: string) => void;
};

export class Queue {
  readonly #ports: QueuePorts;
  #waiting: Entry[] = [];
  #underWay: Entry[] | undefined;
  #postedAt = 0;
  #bytes = 0;
  /** Somebody waits, or enough has gathered, or it has lingered long enough. */
  #isDue = false;
  /** The disk refused the last batch: nothing is posted until the next try. */
  #isHeld = false;
  #stopLingering: (() => void) | undefined;

  constructor(ports: QueuePorts) {
    this.#ports = ports;
  }

  /** `isDue`: it has lingered elsewhere. */
  add(op: SizedOp | null, { waiter, priority, isDue = false }: Manner = {}): void {
    if (priority === 'first') this.#waiting.unshift({ op, waiter });
    else this.#waiting.push({ op, waiter });
    this.#bytes += op?.bytes ?? 0;
    if (waiter) {
      if (!this.#isDue) queueMicrotask(() => this.#pump());
      this.#isDue = true;
    } else if (isDue || this.#waiting.length >= ENOUGH_OPS) {
      this.#isDue = true;
      this.#pump();
    } else if (!this.#isDue && !this.#stopLingering)
      this.#stopLingering = this.#ports.world.after(LINGER_MS, () => this.#lingered());
  }

  #lingered(): void {
    this.#stopLingering = undefined;
    this.#isDue = true;
    this.#pump();
  }

  #pump(): void {
    if (this.#isDue && !this.#isHeld && this.#waiting.length > 0) this.#postNext();
  }

  #postNext(): void {
    if (this.#underWay) return;
    this.#stopLingering?.();
    this.#stopLingering = undefined;
    this.#underWay = this.#waiting.splice(0, batchLength(this.#waiting));
    this.#isDue = this.#waiting.length > 0;
    this.#postedAt = this.#ports.world.now();
    this.#ports.post(this.#underWay.map((entry) => entry.op));
  }

  /** Tries the disk again, with an empty batch if there is nothing else to try it with. */
  retry(): void {
    this.#isHeld = false;
    this.#postNext();
  }

  done({ faults, unchanged }: Findings): void {
    const batch = this.#underWay ?? [];
    this.#underWay = undefined;
    for (const { index, message } of faults) this.#fault(batch[index], message);
    for (const index of unchanged) batch[index]?.waiter?.resolve(false);
    for (const entry of batch) {
      this.#bytes -= entry.op?.bytes ?? 0;
      entry.waiter?.resolve(true); // has no effect on a waiter that is settled already
    }
    this.#pump();
  }

  #fault(entry: Entry | undefined, message: string): void {
    if (!entry?.op) return;
    const why = `The statement ${entry.op.name} was refused: ${message}.`;
    if (entry.waiter) entry.waiter.reject(new TroupeError('internal', why));
    else this.#ports.onFault(entry.op, why);
  }

  /** Nothing of the batch under way was recorded: it goes back to the front. */
  undone(): void {
    this.#waiting = [...(this.#underWay ?? []), ...this.#waiting];
    this.#underWay = undefined;
    this.#isHeld = true;
    this.#isDue = true;
  }

  /** Rejects and removes the statements of waiters since before `time`: a rejected commit is never recorded later. */
  expire(time: number, error: TroupeError): void {
    const isOver = ({ waiter }: Entry) => waiter !== undefined && waiter.since < time;
    this.#reject(this.#waiting.filter(isOver), error);
    this.#waiting = this.#waiting.filter((entry) => !isOver(entry));
  }

  /** Gives everything up and returns the weight of what had no waiter. */
  abandon(error: TroupeError): number {
    this.#stopLingering?.();
    const all = [...(this.#underWay ?? []), ...this.#waiting];
    this.#underWay = undefined;
    this.#waiting = [];
    this.#reject(all, error);
    return all.reduce((lost, { op, waiter }) => lost + (waiter ? 0 : (op?.weight ?? 0)), 0);
  }

  #reject(entries: readonly Entry[], error: TroupeError): void {
    for (const entry of entries) {
      this.#bytes -= entry.op?.bytes ?? 0;
      entry.waiter?.reject(error);
    }
  }

  get ops(): number {
    return this.#waiting.length + (this.#underWay?.length ?? 0);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How long the writer has had the batch under way. */
  get awayMs(): number {
    return this.#underWay ? this.#ports.world.now() - this.#postedAt : 0;
  }
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

/** A statement with its values, checked where the mistake was made: one bad value would spoil the whole batch. */
export function operation(name: WriteName, params: Params, weight = 1): SizedOp {
  if (params.length !== arityOf[name])
    throw new TroupeError('internal', `The statement ${name} takes ${arityOf[name]} values, not ${params.length}.`);
  let bytes = 64;
  let hasSlice = false;
  for (const value of params) {
    if (typeof value === 'string') bytes += value.length;
    else if (value instanceof Uint8Array) {
      bytes += value.byteLength;
      hasSlice ||= isSlice(value);
    } else if (value !== null && typeof value !== 'number' && typeof value !== 'bigint')
      throw new TroupeError('internal', `The statement ${name} cannot take a value of type ${typeof value}.`);
  }
  if (bytes > MAX_STATEMENT_BYTES)
    throw new TroupeError(
      'tooLarge',
      `The statement ${name} carries ${bytes} bytes, but ${MAX_STATEMENT_BYTES} is the most.`,
    );
  return { name, params: hasSlice ? params.map(whole) : params, bytes, weight };
}

// A slice of a large buffer would keep all of it for as long as it waits.
const isSlice = (value: Uint8Array): boolean =>
  value.byteLength !== value.buffer.byteLength && value.buffer.byteLength > Buffer.poolSize;
const whole = (value: Value): Value => (value instanceof Uint8Array && isSlice(value) ? new Uint8Array(value) : value);
