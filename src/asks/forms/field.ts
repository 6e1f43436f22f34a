// Reads one property of a form. What it says of an answer must be of the flat subset; what only describes it is let be.
// A default that its own limits forbid is no default: it would be offered to a person and then refused.

import { readChoices, WAYS } from './choices.ts';
import type { Field } from './form.ts';
import { COUNTS, LENGTHS, limitProblem, limitsOf, NUMBERS, withDefault } from './limits.ts';
import { extraKeyword, isObject } from './words.ts';

type Schema = Record<string, unknown>;
type Common = Pick<Field, 'name' | 'title' | 'description' | 'isRequired' | 'isNullable'>;

/** A string is the rest of a sentence that begins with the name. */
export function readField(name: string, schema: unknown, isRequired: boolean): Field | string {
  if (!isObject(schema)) return 'it must be described by an object';
  const { plain, isNullable } = withoutNull(schema);
  const { title = name, description = '' } = plain;
  if (typeof title !== 'string' || typeof description !== 'string') return 'its title and description must be texts';
  const common = { name, title: title || name, description, isRequired, ...(isNullable && { isNullable }) };
  const field = readTyped(common, plain);
  return typeof field === 'string' ? field : withDefault(field, plain.default);
}

/** Optional properties of models in Python are "this or null": a form asks for the other one. */
function withoutNull(schema: Schema): { plain: Schema; isNullable?: true } {
  const { anyOf, nullable, type, ...rest } = schema;
  if (nullable === true) return { plain: { ...rest, type, ...(anyOf !== undefined && { anyOf }) }, isNullable: true };
  if (Array.isArray(type) && type.length === 2 && type.includes('null'))
    return { plain: { ...schema, type: type.find((each) => each !== 'null') }, isNullable: true };
  if (type !== undefined || !Array.isArray(anyOf) || anyOf.length !== 2 || !anyOf.every(isObject))
    return { plain: schema };
  const [other, another] = anyOf.filter((each) => each.type !== 'null');
  return other && !another ? { plain: { ...other, ...rest }, isNullable: true } : { plain: schema };
}

function readTyped(common: Common, schema: Schema): Field | string {
  if (WAYS.some((way) => schema[way] !== undefined)) return readChoice(common, schema);
  switch (schema.type) {
    case 'string':
      return readText(common, schema);
    case 'number':
    case 'integer':
      return problemOf(schema, NUMBERS) ?? { ...common, type: schema.type, ...limitsOf(schema, NUMBERS) };
    case 'boolean':
      return problemOf(schema, []) ?? { ...common, type: 'boolean' };
    case 'array':
      return readSelection(common, schema);
    case 'object':
      return 'it must not be an object, because a form is flat';
    default:
      return (
        problemOf(schema, []) ?? 'its type must be string, number, integer, boolean, or array with choices as its items'
      );
  }
}

function readChoice(common: Common, schema: Schema): Field | string {
  const choices = readChoices(schema) ?? [];
  if (typeof choices === 'string') return choices;
  return problemOf(schema, WAYS) ?? { ...common, type: 'choice', choices };
}

function readText(common: Common, schema: Schema): Field | string {
  const { pattern, format } = schema;
  if (pattern !== undefined && !isPattern(pattern)) return 'its pattern must be a regular expression of JavaScript';
  if (format !== undefined && typeof format !== 'string') return 'its format must be a text';
  const problem = problemOf(schema, [...LENGTHS, 'pattern', 'format']);
  if (problem !== undefined) return problem;
  const words = { ...(pattern !== undefined && { pattern }), ...(format !== undefined && { format }) };
  return { ...common, type: 'string', ...limitsOf(schema, LENGTHS), ...words };
}

function readSelection(common: Common, schema: Schema): Field | string {
  const { items, uniqueItems } = schema;
  const choices = isObject(items) ? readChoices(items) : undefined;
  if (choices === undefined) return 'a list must say in its items what can be chosen, as enum or as anyOf';
  if (typeof choices === 'string') return choices;
  const problem = problemOf(schema, [...COUNTS, 'items', 'uniqueItems']) ?? problemOf(items as Schema, WAYS);
  if (problem !== undefined) return problem;
  return {
    ...common,
    type: 'choices',
    choices,
    ...limitsOf(schema, COUNTS),
    ...(uniqueItems === true && { uniqueItems }),
  };
}

function problemOf(schema: Schema, known: readonly string[]): string | undefined {
  const extra = extraKeyword(schema, new Set(['type', 'nullable', ...known]));
  return extra ? `it cannot have ${extra}, which forms do not have` : limitProblem(schema);
}

const MAX_PATTERN = 4_096;

/** That it can be read, in either of the two ways in which it will be used; it is used in the validator's thread only. */
function isPattern(pattern: unknown): pattern is string {
  if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN) return false;
  return expressionOf(pattern) !== undefined;
}

/** Schemas mean Unicode; many a pattern was written without it in mind and only works so. */
export function expressionOf(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {} // the next one may take it
  }
  return undefined;
}
