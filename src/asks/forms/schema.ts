// The schema of a form in its plainest words: what an answer is checked against. It says of an answer all that the server's
// own schema says, and nothing else of that schema comes near the compiler.

import type { Field, Form } from './form.ts';
import { COUNTS, LENGTHS, limitsOf, NUMBERS } from './limits.ts';

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

/** As the first version of MCP with choices wrote it, which is also what a validator is quickest with. */
const choicesOf = ({ choices }: Field & { type: 'choice' | 'choices' }): Record<string, unknown> => ({
  enum: choices.map(({ value }) => value),
  enumNames: choices.map(({ title }) => title),
});
