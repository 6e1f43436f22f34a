// The words of JSON Schema, as far as forms know them: which keywords say something of an answer, and which only describe.

export const MAX_NAME = 200;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** A keyword that says something of an answer and is none of these; all that is not a keyword only describes. */
export function extraKeyword(schema: Record<string, unknown>, known: ReadonlySet<string>): string | undefined {
  return Object.keys(schema).find((keyword) => ASSERTIONS.has(keyword) && !known.has(keyword));
}

const ASSERTIONS = new Set([
  ...['$ref', '$dynamicRef', '$recursiveRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
  ...['type', 'enum', 'const', 'nullable', 'discriminator'],
  ...['properties', 'required', 'additionalProperties', 'patternProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties', 'dependencies', 'dependentRequired', 'dependentSchemas'],
  ...['items', 'additionalItems', 'prefixItems', 'unevaluatedItems', 'contains', 'minContains', 'maxContains'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minLength', 'maxLength', 'pattern', 'format'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);
