// The limits that a field of a form may have, and whether its default keeps to them. Patterns and formats are not looked
// at here: they are a server's own code, and run in the validator's thread only.

import type { Field } from './form.ts';

export const LENGTHS = ['minLength', 'maxLength'] as const;
export const COUNTS = ['minItems', 'maxItems'] as const;
export const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] as const;

type Schema = Record<string, unknown>;

/** The first limit in this schema that is no limit. */
export function limitProblem(schema: Schema): string | undefined {
  for (const name of [...LENGTHS, ...COUNTS])
    if (schema[name] !== undefined && !isCount(schema[name])) return `its ${name} must be a whole number, 0 or more`;
  for (const name of NUMBERS)
    if (schema[name] !== undefined && typeof schema[name] !== 'number') return `its ${name} must be a number`;
  const { multipleOf } = schema;
  return typeof multipleOf === 'number' && multipleOf <= 0 ? 'its multipleOf must be more than 0' : undefined;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

/** Those of the limits that the schema has. */
export function limitsOf<Name extends string>(schema: Schema, names: readonly Name[]): { [name in Name]?: number } {
  const limits: { [name in Name]?: number } = {};
  for (const name of names) if (typeof schema[name] === 'number') limits[name] = schema[name];
  return limits;
}

export function withDefault(field: Field, value: unknown): Field {
  return allows(field, value) ? ({ ...field, default: value } as Field) : field;
}

function allows(field: Field, value: unknown): boolean {
  switch (field.type) {
    case 'string':
      return typeof value === 'string' && isBetween([...value].length, field.minLength, field.maxLength);
    case 'number':
    case 'integer':
      return typeof value === 'number' && allowsNumber(field, value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'choice':
      return field.choices.some((choice) => choice.value === value);
    case 'choices':
      return Array.isArray(value) && allowsList(field, value);
  }
}

function allowsNumber(field: Field & { type: 'number' | 'integer' }, value: number): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = field;
  if (field.type === 'integer' && !Number.isInteger(value)) return false;
  if (value <= (exclusiveMinimum ?? Number.NEGATIVE_INFINITY)) return false;
  if (value >= (exclusiveMaximum ?? Number.POSITIVE_INFINITY)) return false;
  return isBetween(value, minimum, maximum) && (multipleOf === undefined || Number.isSafeInteger(value / multipleOf));
}

function allowsList(
  { choices, minItems, maxItems, uniqueItems }: Field & { type: 'choices' },
  values: unknown[],
): boolean {
  const allowed = new Set<unknown>(choices.map(({ value }) => value));
  if (uniqueItems && new Set(values).size < values.length) return false;
  return isBetween(values.length, minItems, maxItems) && values.every((value) => allowed.has(value));
}

const isBetween = (value: number, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY): boolean =>
  value >= least && value <= most;
