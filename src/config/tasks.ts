// What the configuration says of tasks: how many, how long, how large, and which calls may be made again after a crash.

import { z } from 'zod';
import type { Rerun } from './types.ts';
import { count, duration, LONGEST_LIFE_MS, size, word } from './units.ts';

const MIB = 1024 ** 2;
const may = z.union([z.boolean(), z.literal('keyed')], { error: 'must be true, false or "keyed"' });

/** One word for all tools, or a word for each name or glob; the first that fits counts. */
export const rerunSchema = z
  .union([may, z.record(word, may)], {
    error: 'must be true, false, "keyed", or an object such as {"fetch_*": true}',
  })
  .transform((written): readonly Rerun[] => {
    const rules = typeof written === 'object' ? Object.entries(written) : [['*', written] as const];
    return rules.map(([tools, each]) => ({ tools, when: each === 'keyed' ? each : each ? 'always' : 'never' }));
  });

export const tasksSchema = z
  .strictObject({
    maxOpen: count(1).prefault(1_000),
    ttlMs: duration(1, LONGEST_LIFE_MS).prefault('1d'),
    maxTtlMs: duration(1, LONGEST_LIFE_MS).prefault('30d'),
    maxResultBytes: size(1_024, 24 * MIB).prefault('8MB'),
    keepMs: duration(0, LONGEST_LIFE_MS).prefault(0),
    pollMs: duration(1).prefault('1s'),
  })
  .refine(({ ttlMs, maxTtlMs }) => ttlMs <= maxTtlMs, {
    path: ['ttlMs'],
    error: 'must not exceed maxTtlMs, which is 30 days unless it is set',
  })
  .meta({ id: 'TaskSettings' });
