// What a server says of the task that it wants its question to be: how long it shall live. Nothing else is read, and what is
// no such thing is refused before anybody is asked.

import { type Span, spansOf } from '../../protocol/json.ts';
import type { Refusal } from '../reading.ts';

export type Wish = { readonly ttlMs: number };

/** Shorter, and it might be gone before the server has heard of it. */
const LEAST_MS = 1_000;

/** Without a `task` it is a plain question. Who names no time, or wants it to live for ever, gets the most that there is. */
export function readWish(params: Buffer, mostMs: number): Wish | Refusal | undefined {
  const task = only(params, spansOf(params, 'task'));
  if (task === undefined) return undefined;
  if (typeof task === 'string' || task[0] !== OPEN_BRACE)
    return invalid('task must be an object such as {"ttl":60000}');
  const ttl = only(task, spansOf(task, 'ttl'));
  if (ttl === undefined || ttl.toString('latin1', 0, 5) === 'null') return { ttlMs: mostMs };
  const ttlMs = typeof ttl === 'string' || !isNumber(ttl) ? Number.NaN : Number(ttl.toString('latin1'));
  if (!(ttlMs > 0)) return invalid('the ttl of a task is a number of milliseconds above 0');
  return { ttlMs: Math.max(LEAST_MS, Math.min(Math.round(ttlMs), mostMs)) };
}

const OPEN_BRACE = 0x7b;
const MAX_DIGITS = 400;

/** What is given twice is nothing that two readers would read the same way. */
const only = (object: Buffer, [span, another]: Span[]): Buffer | 'twice' | undefined =>
  another ? 'twice' : span && object.subarray(span.from, span.to);

/** JSON has no other values that begin so. */
const isNumber = (value: Buffer): boolean => value.length <= MAX_DIGITS && /^-?\d/.test(value.toString('latin1', 0, 2));

const invalid = (message: string): Refusal => ({ code: -32602, message });
