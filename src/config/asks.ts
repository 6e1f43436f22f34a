// What the configuration says of questions: how long they may take, which are answered by rule, which calls must be approved,
// what models may cost, and which directories are roots.

import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Approve, ASK_KINDS, type RootSettings } from './types.ts';
import { count, duration, word } from './units.ts';

const when = z.enum(['always', 'once', 'never']);

/** One word for all tools, or a word for each name or glob; the first that fits counts. */
export const approveSchema = z
  .union([when, z.record(word, when), z.array(z.strictObject({ tools: word, when }))], {
    error: 'must be "always", "once", "never", or an object such as {"delete_*": "always"}',
  })
  .transform((written): readonly Approve[] => {
    if (typeof written === 'string') return [{ tools: '*', when: written }];
    return Array.isArray(written) ? written : Object.entries(written).map(([tools, when]) => ({ tools, when }));
  });

export const samplingSchema = z.strictObject({
  requestsPerHour: count(0).prefault(60),
  tokensPerHour: count(0).prefault(200_000),
  maxIterations: count(1).prefault(20),
});

export const asksSchema = z
  .strictObject({
    timeoutMs: duration(1).prefault('10m'),
    hostMs: duration(0).prefault('2m'),
    answererMs: duration(1).prefault('1m'),
    maxOpen: count(1).prefault(1_000),
    rules: z
      .array(
        z.strictObject({
          server: word.exactOptional(),
          tool: word.exactOptional(),
          kind: z.enum(ASK_KINDS).exactOptional(),
          answer: z.enum(['defaults', 'decline', 'cancel']),
        }),
      )
      .prefault([]),
  })
  .meta({ id: 'AskSettings' });

export const rootsSchema = z
  .strictObject({ list: z.array(word).prefault([]), allow: z.array(word).prefault(() => [homedir()]) })
  .meta({ id: 'RootSettings' });

/** Relative to the file, like every path in it. */
export function rootsOf({ list, allow }: RootSettings, path: string): RootSettings {
  const absolute = (written: string) => resolve(dirname(path), written);
  return { list: list.map(absolute), allow: allow.map(absolute) };
}
