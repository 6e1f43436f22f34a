// What the user typed after a tool's name, as the JSON of its arguments.
// Numbers and JSON are spliced in as they were written: 9007199254740993 must arrive with its last digit.

import { readFileSync } from 'node:fs';
import { readRegular } from '../../files/regular.ts';
import { sentence } from '../../protocol/failures.ts';
import { members } from '../../protocol/json.ts';
import { usage } from '../verb.ts';

type Schema = Record<string, unknown>;
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] as const;
type Type = (typeof TYPES)[number];

/** The arguments object. `schema` is the tool's inputSchema where it is known. */
export function argumentsJson(pairs: readonly string[], args: string | undefined, schema: unknown): Buffer {
  const base = args === undefined ? undefined : objectText(args);
  if (base && pairs.length === 0) return Buffer.from(base);
  const given = new Map<string, string>();
  if (base) for (const [key, value] of members(Buffer.from(base))) given.set(key, value.toString());
  for (const pair of pairs) {
    const { key, value, isJson } = splitPair(pair);
    given.set(key, isJson ? jsonText(value, `the value of ${key}`) : typed(key, value, schema));
  }
  return Buffer.from(`{${[...given].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`);
}

/** `key=value` pairs as strings, for prompts and completions, whose arguments are strings by the specification. */
export function stringArguments(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map(splitPair).map(({ key, value, isJson }) => [key, isJson ? String(JSON.parse(value)) : value]),
  );
}

function splitPair(pair: string): { key: string; value: string; isJson: boolean } {
  const at = pair.indexOf('=');
  if (at < 1) throw usage(`'${pair}' is no argument: write key=value, key:=json, or --args '{"key":…}'`);
  const isJson = pair[at - 1] === ':' && at > 1;
  return { key: pair.slice(0, isJson ? at - 1 : at), value: pair.slice(at + 1), isJson };
}

function typed(key: string, value: string, schema: unknown): string {
  const types = typesOf(propertyOf(schema, key));
  const type = typeOf(value);
  if (types === undefined) return type === undefined || type === 'string' ? JSON.stringify(value) : value;
  if (type !== undefined && type !== 'string' && (types.has(type) || (type === 'integer' && types.has('number'))))
    return value;
  if (types.has('string')) return JSON.stringify(value);
  throw usage(`the argument ${key} wants ${[...types].join(' or ')}, not '${value}'; ${key}:=json sends any JSON`);
}

/** The JSON type the text would have, or nothing if it is no JSON. */
function typeOf(text: string): Type | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  // A number beyond 2^53 is judged by its text, for parsing has already rounded it.
  if (typeof value === 'number') return /^\s*-?\d+\s*$/.test(text) || Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as Type;
}

/** The types a property allows; undefined where the schema does not say, as behind a `$ref`. */
function typesOf(property: Schema | undefined): Set<Type> | undefined {
  if (!property) return undefined;
  if (property.type !== undefined) return new Set([property.type].flat().filter(isType));
  const literals = Array.isArray(property.enum) ? property.enum : 'const' in property ? [property.const] : [];
  if (literals.length > 0) return new Set(literals.map((literal) => typeOf(JSON.stringify(literal))).filter(isType));
  const branches = [property.anyOf, property.oneOf].find(Array.isArray)?.map((branch) => typesOf(branch));
  if (!branches?.length || branches.includes(undefined)) return undefined;
  return new Set(branches.flatMap((types) => [...(types ?? [])]));
}

const isType = (name: unknown): name is Type => TYPES.includes(name as Type);

function propertyOf(schema: unknown, key: string): Schema | undefined {
  const properties = (schema as { properties?: Record<string, Schema> } | undefined)?.properties;
  return properties && Object.hasOwn(properties, key) ? properties[key] : undefined;
}

function objectText(args: string): string {
  const text = jsonText(argsText(args), '--args');
  if (text[0] !== '{') throw usage(`--args wants a JSON object, like '{"message":"hi"}'`);
  return text;
}

/** The JSON as it was written, if it is JSON. */
function jsonText(text: string, what: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    throw usage(`${what} is not JSON: ${sentence(error)}`);
  }
  return text.trim();
}

/** No server takes more in one frame. */
const MOST_ARGUMENT_BYTES = 64 * 2 ** 20;

/** `-` is stdin, `@file` a file, anything else the JSON itself. */
function argsText(args: string): string {
  if (args !== '-' && !args.startsWith('@')) return args;
  try {
    const bytes = args === '-' ? readFileSync(0) : readRegular(args.slice(1), MOST_ARGUMENT_BYTES);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw usage(`--args ${args} cannot be read: ${sentence(error)}`);
  }
}
