// How a plugin reads its options, and the options that plugins with models have in common. A complaint is one sentence that
// names the option and holds no value, because a value may be a secret.

import { z } from 'zod';
import { check } from '../config/complaints.ts';
import { count, duration, word } from '../config/units.ts';

/** The longest that a model of a plugin is waited for. */
export const LONGEST_MS = 300_000;

// A header that fetch cannot send would be quoted in its error.
const header = z.string().regex(/^[\x20-\x7e]*$/, 'must be printable ASCII characters on one line');
const share = z.number().min(0, 'must be between 0 and 1').max(1, 'must be between 0 and 1').prefault(0.5);

export const modelTable = z
  .array(
    z.strictObject({
      name: word,
      cost: share,
      speed: share,
      intelligence: share,
      takes: z.array(z.enum(['image', 'audio'])).prefault([]),
    }),
  )
  .min(1, 'must have one model at least')
  .refine((models) => new Set(models.map(({ name }) => name)).size === models.length, 'must name each model once');

/** To be spread into the schema of a plugin. */
export const modelOptions = {
  models: modelTable,
  /** The empty text, as from an empty variable, means no key. */
  apiKey: header.prefault(''),
  headers: z.record(word, header).prefault({}),
  maxTokens: count(1).prefault(Number.MAX_SAFE_INTEGER),
  timeoutMs: duration(1)
    .refine((ms) => ms <= LONGEST_MS, 'must be 5 minutes at most')
    .prefault(120_000),
  /** Whether a temperature is passed on: newer models refuse one. */
  temperature: z.boolean().prefault(true),
};

export const address = (usual: string) =>
  z
    .string()
    .refine(isWebAddress, `must be an address such as ${usual}, without a user name or password`)
    .prefault(usual);

export function readOptions<Output>(plugin: string, schema: z.ZodType<Output>, options: unknown): Output {
  const { data, findings } = check(schema, options ?? {});
  if (findings.length === 0) return data as Output;
  throw new Error(`${plugin}: ${findings.map(({ message }) => message).join('; ')}`);
}

/** A path below an address that may have a query, as some gateways want. */
export function endpoint(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  return url.href;
}

function isWebAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}
