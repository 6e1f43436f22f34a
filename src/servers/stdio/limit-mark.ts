// A mark that a process cannot take off. Linux has kept a limit on the number of file locks since 2.4 and ignores it; like all
// limits it passes to children, through `setsid` and an empty environment, and only the privileged may raise it again. We set it
// to a number that nobody else uses: which life of which daemon, and which of the processes that it started.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { shortageOf } from '../../world/limits.ts';

const COUNT_BITS = 20n;
const LIFE_BITS = 38n;
/** A daemon within a server of another may only lower the limit: what is above these bits counts down. */
const LEVEL_AT = COUNT_BITS + LIFE_BITS;
const HIGHEST_LEVEL = 15n;

/** The number for the n-th process of a life; undefined where the limit is too low already. */
export function limitFor(mark: string, count: number): bigint | undefined {
  const level = ownLevel();
  if (level < 1n) return undefined;
  return (level << LEVEL_AT) | (lifeOf(mark) << COUNT_BITS) | (BigInt(count) & ((1n << COUNT_BITS) - 1n));
}

/** The part of the number that all processes of a life share. */
export const lifeOf = (mark: string): bigint =>
  createHash('sha256').update(mark).digest().readBigUInt64BE() >> (64n - LIFE_BITS);

export const lifeIn = (limit: bigint): bigint => (limit >> COUNT_BITS) & ((1n << LIFE_BITS) - 1n);

/** The limit of a process by the text of its /proc/<pid>/limits; undefined when there is none. */
export function limitIn(limits: string): bigint | undefined {
  const [, hard] = /^Max file locks\s+\S+\s+(\d+)/m.exec(limits) ?? [];
  const limit = hard === undefined ? 0n : BigInt(hard);
  return limit >> LEVEL_AT > 0n ? limit : undefined; // a lower one was set by somebody else
}

/** Lines of a shell script that set the limit: dash and busybox know it by another letter than bash. */
export const limiting = (limit: bigint): string => `ulimit -w ${limit} 2>/dev/null || ulimit -x ${limit} 2>/dev/null`;

function ownLevel(): bigint {
  const own = ownLimits();
  if (/^Max file locks\s+\S+\s+unlimited/m.test(own)) return HIGHEST_LEVEL;
  return ((limitIn(own) ?? 0n) >> LEVEL_AT) - 1n;
}

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1');
  } catch (error) {
    if (shortageOf(error)) throw error; // a process without the mark could get away: it is started later
    return ''; // a system that does not show them
  }
}
