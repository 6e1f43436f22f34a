// Durations and sizes as people write them: 30000 or "30s", 16777216 or "16MB". After parsing they are plain
// milliseconds and bytes. And texts that can be handed to a process or to the network.

import { z } from 'zod';
import { durationOf } from './durations.ts';

// Compiling a schema pays where it is used thousands of times; ours are used once at a start.
z.config({ jitless: true });

// Patterns, and not only a check, because editors read them in the JSON Schema.
const DURATION = /^\d+(\.\d+)?\s*(ms|s|m|h|d)?$/;
const SIZE = /^(\d+(?:\.\d+)?)\s*(?:([KMG])i?)?B?$/i;

/** Powers of 1024 for both spellings: that is how nats-server and most people mean "16MB". */
const BYTES: Record<string, number> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const DAY_MS = 86_400_000;

/** The longest duration that is kept in rows and not in a timer of Node's. */
export const LONGEST_LIFE_MS = 366 * DAY_MS;

export function duration(leastMs: number, mostMs = LONGEST_TIMER_MS) {
  const error = 'must be a duration, such as 30000 (milliseconds), "30s" or "5m"';
  return z
    .union([z.number(), z.string().regex(DURATION, { error })], { error })
    .transform((written) => (typeof written === 'number' ? Math.round(written) : (durationOf(written) ?? Number.NaN)))
    .refine(
      (ms) => ms >= leastMs && ms <= mostMs,
      `must be between ${leastMs} ms and ${Math.floor(mostMs / DAY_MS)} days`,
    );
}

export function size(leastBytes: number, mostBytes: number) {
  const error = 'must be a size, such as 1048576 (bytes), "512KB" or "16MB"';
  return z
    .union([z.number(), z.string().regex(SIZE, { error })], { error })
    .transform(bytesOf)
    .refine(
      (bytes) => bytes >= leastBytes && bytes <= mostBytes,
      `must be between ${leastBytes} and ${mostBytes} bytes`,
    );
}

export function count(least: number) {
  const error = `must be a whole number of at least ${least}`;
  return z.int({ error }).min(least, { error });
}

// A NUL cannot pass into the arguments or the environment of a process: spawning would throw.
export const text = z.string().refine((value) => !value.includes('\0'), 'must not contain a NUL character');
export const word = text.min(1, 'must not be empty');

function bytesOf(written: number | string): number {
  if (typeof written === 'number') return Math.round(written);
  const [, digits, unit = ''] = SIZE.exec(written) ?? [];
  return Math.round(Number(digits) * (BYTES[unit.toUpperCase()] ?? 1));
}
