// One property of a form: the flat subset of JSON Schema that MCP allows, read as plain data. What it says of an answer must be
// of that subset; what only describes it is let be. A default that its own limits forbid is no default: it would be offered to a
// person and then refused.

export type Field = TextField | NumberField | BooleanField | ChoiceField | ChoicesField;

type Common = {
  readonly name: string;
  /** The name, where the server gave no title. */
  readonly title: string;
  /** Empty where the server gave none. */
  readonly description: string;
  readonly isRequired: boolean;
  /** `null` is an answer too, as servers in Python write it. */
  readonly isNullable?: true;
};

type TextField = Common & {
  readonly type: 'string';
  readonly default?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /** email, uri, date or date-time; of others some are known to the validator, and the rest mean nothing. */
  readonly format?: string;
};

type NumberField = Common & {
  readonly type: 'number' | 'integer';
  readonly default?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
};

type BooleanField = Common & { readonly type: 'boolean'; readonly default?: boolean };

export type Choice = { readonly value: string; readonly title: string };

/** One of them. */
type ChoiceField = Common & {
  readonly type: 'choice';
  readonly choices: readonly Choice[];
  readonly default?: string;
};

/** Any of them. */
type ChoicesField = Common & {
  readonly type: 'choices';
  readonly choices: readonly Choice[];
  readonly default?: readonly string[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: true;
};

type Schema = Record<string, unknown>;

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
  if (CHOICE_KEYWORDS.some((each) => schema[each] !== undefined)) return readChoice(common, schema);
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
  return problemOf(schema, CHOICE_KEYWORDS) ?? { ...common, type: 'choice', choices };
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
  const problem = problemOf(schema, [...COUNTS, 'items', 'uniqueItems']) ?? problemOf(items as Schema, CHOICE_KEYWORDS);
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

/** Only whether the pattern can be read: it is a server's own code, and runs in the validator's thread only. */
function isPattern(pattern: unknown): pattern is string {
  if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN) return false;
  return expressionOf(pattern) !== undefined;
}

/** The patterns of schemas are in Unicode mode; many were written without it in mind, and can only be read without it. */
export function expressionOf(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {} // the next one may take it
  }
  return undefined;
}

// ── Choices ──────────────────────────────────────────────────────────────────

const MAX_CHOICES = 1_000;

/**
 * In each of the ways that MCP has had for them: enum, enum with enumNames, and const with title in oneOf or anyOf. Nothing when
 * the schema names no choices; a string is why it is refused. Choices are texts.
 */
function readChoices(schema: Schema): Choice[] | string | undefined {
  const [keyword, another] = CHOICE_KEYWORDS.filter((each) => schema[each] !== undefined);
  if (!keyword) return undefined;
  if (another) return `its choices must be given once, not as ${keyword} and as ${another}`;
  const listed = keyword === 'const' ? [schema.const] : schema[keyword];
  if (!Array.isArray(listed) || listed.length === 0) return `its ${keyword} must be a list of choices`;
  if (listed.length > MAX_CHOICES) return `it must not have more than ${MAX_CHOICES} choices`;
  if (schema.type !== undefined && schema.type !== 'string') return 'its choices must be texts';
  return keyword === 'oneOf' || keyword === 'anyOf' ? titled(listed, keyword) : named(listed, schema.enumNames);
}

const CHOICE_KEYWORDS = ['enum', 'const', 'oneOf', 'anyOf'] as const;

function named(values: readonly unknown[], names: unknown): Choice[] | string {
  if (!values.every((value) => typeof value === 'string')) return 'its choices must be texts';
  const titles: unknown[] = Array.isArray(names) ? names : [];
  return unique(values.map((value, index) => ({ value, title: textOr(titles[index], value) })));
}

function titled(listed: readonly unknown[], keyword: string): Choice[] | string {
  const choices: Choice[] = [];
  for (const each of listed) {
    if (!isObject(each) || typeof each.const !== 'string')
      return `its ${keyword} must be a list of texts, as const and title`;
    choices.push({ value: each.const, title: textOr(each.title, each.const) });
  }
  return unique(choices);
}

const textOr = (title: unknown, value: string): string => (typeof title === 'string' && title !== '' ? title : value);

const unique = (choices: readonly Choice[]): Choice[] =>
  [...new Map(choices.toReversed().map((choice) => [choice.value, choice])).values()].toReversed();

// ── Limits, and whether a default keeps to them; patterns and formats are left to the validator's thread ──

export const LENGTHS = ['minLength', 'maxLength'] as const;
export const COUNTS = ['minItems', 'maxItems'] as const;
export const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] as const;

/** The first limit in this schema that is no limit. */
function limitProblem(schema: Schema): string | undefined {
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

function withDefault(field: Field, value: unknown): Field {
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

// ── Keywords of JSON Schema ──────────────────────────────────────────────────

export const MAX_NAME = 200;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** A keyword that says something of an answer and is none of these; all that is not a keyword only describes. */
export function extraKeyword(schema: Schema, known: ReadonlySet<string>): string | undefined {
  return Object.keys(schema).find((keyword) => ASSERTIONS.has(keyword) && !known.has(keyword));
}

const ASSERTIONS = new Set(
  `$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if then else
  type enum const nullable discriminator
  properties required additionalProperties patternProperties unevaluatedProperties propertyNames
  minProperties maxProperties dependencies dependentRequired dependentSchemas
  items additionalItems prefixItems unevaluatedItems contains minContains maxContains
  minItems maxItems uniqueItems minLength maxLength pattern format
  minimum maximum exclusiveMinimum exclusiveMaximum multipleOf`.split(/\s+/),
);
