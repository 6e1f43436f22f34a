// Reads what a server asks in form mode: the flat subset of JSON Schema that MCP allows, as plain data, or why it is refused.
// A form is what a person fills in and what an answer is checked against; the schema itself goes on to hosts as it came.

import {
  COUNTS,
  extraKeyword,
  type Field,
  isObject,
  LENGTHS,
  limitsOf,
  MAX_NAME,
  NUMBERS,
  quoted,
  readField,
} from './field.ts';

export type { Choice, Field } from './field.ts';

export type Form = {
  readonly fields: readonly Field[];
  /** Nothing but these fields may be said. */
  readonly isClosed?: true;
};

const MAX_BYTES = 65_536;
const MAX_FIELDS = 100;

/** Takes a schema as bytes or as an object. A string is the sentence why it is refused. */
export function readForm(schema: unknown): Form | string {
  const found = Buffer.isBuffer(schema) ? parsed(schema) : schema;
  if (!isObject(found)) return 'the schema of a form must be a JSON object';
  if (sizeOf(schema) > MAX_BYTES) return `the schema of a form must not be larger than ${MAX_BYTES / 1024} KB`;
  if (found.type !== 'object') return 'the schema of a form must have "type": "object"';
  const { properties = {}, required = [], additionalProperties = true } = found;
  if (!isObject(properties)) return 'the properties of a form must be an object';
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string'))
    return 'what a form has as required must be a list of names';
  const extra = extraKeyword(found, ROOT);
  if (extra) return `a form cannot have ${extra}: it must be a flat object of simple properties`;
  if (typeof additionalProperties !== 'boolean' && !isEmpty(additionalProperties))
    return 'a form cannot say what else may be answered: additionalProperties must be true or false';
  const fields = readFields(properties, new Set(required));
  if (typeof fields === 'string') return fields;
  return additionalProperties === false ? { fields, isClosed: true } : { fields };
}

/** The keywords that a form may have; all others that say something of an answer make it more than a flat form. */
const ROOT = new Set(['type', 'properties', 'required', 'additionalProperties']);

function readFields(properties: Record<string, unknown>, required: ReadonlySet<string>): Field[] | string {
  const names = Object.keys(properties);
  if (names.length > MAX_FIELDS) return `a form must not have more than ${MAX_FIELDS} properties`;
  const fields: Field[] = [];
  for (const name of names) {
    if (!isName(name)) return `${quoted(name)} cannot be the name of a property in a form`;
    const field = readField(name, properties[name], required.has(name));
    if (typeof field === 'string') return `${name}: ${field}`;
    fields.push(field);
  }
  const missing = [...required].find((name) => !Object.hasOwn(properties, name));
  return missing === undefined ? fields : `the form requires ${quoted(missing)}, which is none of its properties`;
}

/** The name of a field stands on one line with what is wrong with its answer. */
const isName = (name: string): boolean => /^\P{Cc}+$/u.test(name) && name.length <= MAX_NAME && name !== '__proto__';

/** The content that takes every default there is; undefined when a required field has none. */
export function defaultsOf(form: Form): Record<string, unknown> | undefined {
  if (form.fields.some((field) => field.isRequired && field.default === undefined)) return undefined;
  const given = form.fields.filter((field) => field.default !== undefined);
  return Object.fromEntries(given.map((field) => [field.name, field.default]));
}

function parsed(bytes: Buffer): unknown {
  try {
    return bytes.length > MAX_BYTES ? {} : JSON.parse(bytes.toString());
  } catch {
    return undefined; // refused as a schema that is no object
  }
}

function sizeOf(schema: unknown): number {
  try {
    return Buffer.isBuffer(schema) ? schema.length : Buffer.byteLength(JSON.stringify(schema));
  } catch {
    return Number.POSITIVE_INFINITY; // nested deeper than the stack allows
  }
}

const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

// ── The schema of a form in its plainest words ───────────────────────────────

/** Says of an answer all that the server's own schema says; nothing else of that schema reaches the compiler of ajv. */
export function schemaOf({ fields, isClosed }: Form): Record<string, unknown> {
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.name, propertyOf(field)])),
    required: fields.filter((field) => field.isRequired).map((field) => field.name),
    additionalProperties: !isClosed,
  };
}

function propertyOf(field: Field): Record<string, unknown> {
  const { name, title, description, isNullable } = field;
  const words = { ...(title !== name && { title }), ...(description && { description }) };
  const value = field.default !== undefined && { default: field.default };
  const plain = { ...words, ...typeOf(field), ...value };
  return isNullable ? { anyOf: [plain, { type: 'null' }] } : plain;
}

function typeOf(field: Field): Record<string, unknown> {
  switch (field.type) {
    case 'string': {
      const { pattern, format } = field;
      const words = { ...(pattern !== undefined && { pattern }), ...(format !== undefined && { format }) };
      return { type: 'string', ...limitsOf(field, LENGTHS), ...words };
    }
    case 'number':
    case 'integer':
      return { type: field.type, ...limitsOf(field, NUMBERS) };
    case 'boolean':
      return { type: 'boolean' };
    case 'choice':
      return { type: 'string', ...choicesOf(field) };
    case 'choices': {
      const unique = field.uniqueItems && { uniqueItems: true };
      return { type: 'array', ...limitsOf(field, COUNTS), ...unique, items: { type: 'string', ...choicesOf(field) } };
    }
  }
}

/** As enum and enumNames, whichever way the server wrote them: validators are quickest with these. */
const choicesOf = ({ choices }: Field & { type: 'choice' | 'choices' }): Record<string, unknown> => ({
  enum: choices.map(({ value }) => value),
  enumNames: choices.map(({ title }) => title),
});
