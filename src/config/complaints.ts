// Sentences about what is wrong with a configuration. Each names the thing and the remedy and has its line and column;
// none holds a value from the file, because a value may be a secret.

import { z } from 'zod';
import { nearest } from './names.ts';

export type Complaint = {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The file could not be read at that moment, and may be the next time. */
  readonly isPassing?: boolean;
};

export type Keys = readonly (string | number)[];

/** A complaint that is not yet tied to a line: the keys that lead to it, and whether the key or the value is meant. */
export type Finding = {
  readonly keys: Keys;
  readonly at: 'key' | 'value';
  readonly message: string;
  readonly isMissing?: boolean;
};

export function formatComplaint({ path, line, column, message }: Complaint): string {
  return `${path}:${line}:${column}: ${message}`;
}

/** Parses a value, or finds everything that is wrong with it. `owner` is how the sentences call the value itself. */
export function check<Output>(schema: z.ZodType<Output>, value: unknown, owner = '') {
  const result = schema.safeParse(value, { error: predicateOf });
  if (result.success) return { data: result.data, findings: [] };
  return { data: undefined, findings: result.error.issues.flatMap((issue) => findingsOf(issue, schema, owner)) };
}

/** `["env", "A"]` is written `env.A`, and `["args", 1]` is `args[1]`. */
export function written(keys: Keys, owner = ''): string {
  const parts = keys.map((key) => {
    if (typeof key === 'number') return `[${key}]`;
    return /^[\w$-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return (owner + parts.join('')).replace(/^\./, '') || 'its definition';
}

export function didYouMean(word: string, words: readonly string[]): string {
  const meant = nearest(word, words);
  return meant ? `; did you mean "${meant}"?` : '';
}

function findingsOf(issue: z.core.$ZodIssue, schema: z.ZodType, owner: string): Finding[] {
  const keys = issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      keys: [...keys, key],
      at: 'key',
      message: `${written([...keys, key], owner)} is not a setting${didYouMean(key, keysAt(schema, keys)) || '; remove it'}`,
    }));
  }
  const at = issue.code === 'invalid_key' ? 'key' : 'value';
  return [{ keys, at, message: `${written(keys, owner)} ${issue.message}`, isMissing: issue.message === MISSING }];
}

function keysAt(schema: unknown, keys: Keys): string[] {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodExactOptional) return keysAt(schema.unwrap(), keys);
  if (schema instanceof z.ZodRecord) return keysAt(schema.valueType, keys.slice(1));
  if (!(schema instanceof z.ZodObject)) return [];
  const [first, ...rest] = keys;
  return first === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[first], rest);
}

const MISSING = 'is missing';

/** The end of a sentence that begins with the key. Where the schema has a sentence of its own, that one is used. */
function predicateOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message;
  if (issue.code === 'invalid_value') return `must be ${choiceOf(issue.values.map(String), issue.input)}`;
  if (issue.code !== 'invalid_type') return undefined;
  if (issue.input === undefined) return MISSING;
  const isUnquoted = issue.expected === 'string' && ['number', 'boolean'].includes(typeof issue.input);
  return `must be ${nounOf(issue.expected)}, not ${kindOf(issue.input)}${isUnquoted ? '; write it in double quotes' : ''}`;
}

function choiceOf(values: string[], input: unknown): string {
  const list = values.map((value) => `"${value}"`).join(', ');
  if (values.length === 1) return list;
  return `one of ${list}${typeof input === 'string' ? didYouMean(input, values) : ''}`;
}

function kindOf(input: unknown): string {
  if (input === null) return 'null';
  return nounOf(Array.isArray(input) ? 'array' : typeof input);
}

function nounOf(kind: string): string {
  const names: Record<string, string> = { array: 'a list', record: 'an object', object: 'an object', string: 'a text' };
  return names[kind] ?? `a ${kind}`;
}
