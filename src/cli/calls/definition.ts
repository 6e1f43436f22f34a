// One tool, resource, template or prompt with everything that its server says of it: the whole text, and its schemas as lists
// that can be read.

import { TroupeError } from '../../protocol/failures.ts';
import { commandText } from '../terminal/quoting.ts';
import { flat } from '../terminal/table.ts';
import { folded, stated } from '../terminal/words.ts';
import type { Output } from '../verb.ts';

type Schema = Readonly<Record<string, unknown>>;

export type Kind = 'tools' | 'resources' | 'templates' | 'prompts';

export type Item = {
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly uri?: string;
  readonly uriTemplate?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly inputSchema?: Described;
  readonly outputSchema?: Described;
  readonly annotations?: { readonly title?: string } & Record<string, unknown>;
  readonly arguments?: readonly { name: string; required?: boolean; description?: string }[];
};
type Described = Schema & { readonly properties?: Record<string, unknown>; readonly required?: unknown };
export type Listing = {
  readonly items: readonly { readonly server: string; readonly item: Item }[];
  readonly missing: readonly { readonly server: string; readonly state: string; readonly why?: string | null }[];
};

/** What a person types to mean it: resources also have an address. */
const namesOf = ({ name, uri, uriTemplate }: Item): string[] =>
  [name, uri, uriTemplate].filter((each) => each !== undefined);

export function definitionIn({ items }: Listing, kind: Kind, server: string, wanted: string): number {
  const index = items.findIndex(({ item }) => namesOf(item).includes(wanted));
  if (index >= 0) return index;
  const near = items.flatMap(({ item }) => namesOf(item)).find((name) => isNear(name, wanted));
  const hint = near === undefined ? `\`troupe ${kind} ${server}\` lists them` : `did you mean ${flat(near)}?`;
  throw new TroupeError('unknownName', `${server} has no ${kind.slice(0, -1)} ${wanted}; ${hint}`);
}

function isNear(name: string, wanted: string): boolean {
  const bare = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  const [one, other] = [bare(name), bare(wanted)];
  return other.length > 1 && (one.includes(other) || other.includes(one));
}

type Line = readonly [depth: number, text: string];

export function definitionText(output: Output, kind: Kind, server: string, item: Item): string {
  const { name = '', title = item.annotations?.title, description, inputSchema, outputSchema } = item;
  const head = stated(output, name, ` of ${server}${title && title !== name ? `: ${flat(String(title))}` : ''}`);
  const sections = [
    description ? folded(String(description), output.width).join('\n') : '',
    section(
      output,
      '',
      factsOf(item).map((fact): Line => [0, fact]),
    ),
    section(
      output,
      'arguments',
      kind === 'prompts' ? promptLines(item) : inputSchema ? propertyLines(inputSchema) : [],
    ),
    section(output, 'result', outputSchema ? propertyLines(outputSchema) : []),
    usageOf(kind, server, item),
  ];
  return [head, ...sections.filter(Boolean)].join('\n\n');
}

function section(output: Output, title: string, lines: readonly Line[]): string {
  if (lines.length === 0) return '';
  const shown = lines.flatMap(([depth, text]) => {
    const indent = ' '.repeat(2 * depth + (title ? 2 : 0));
    return folded(text, Math.max(20, output.width - indent.length - 4)).map(
      (line, index) => `${indent}${index > 0 ? '    ' : ''}${line}`,
    );
  });
  return [...(title ? [output.paint('dim', title)] : []), ...shown].join('\n');
}

const HINTS: Record<string, readonly [yes: string, no: string]> = {
  readOnlyHint: ['it changes nothing', 'it may change something'],
  destructiveHint: ['it may destroy something', 'it destroys nothing'],
  idempotentHint: ['twice is the same as once', 'twice is not the same as once'],
  openWorldHint: ['it deals with the world outside', 'it deals with nothing outside'],
};

/** In the server's words of MCP, which only the server vouches for. */
function factsOf({ uri, uriTemplate, mimeType, size, annotations }: Item): string[] {
  const hints = Object.entries(isSchema(annotations) ? annotations : {}).flatMap(([key, value]) => {
    const hint = HINTS[key];
    if (hint && typeof value === 'boolean') return [value ? hint[0] : hint[1]];
    return key === 'title' ? [] : [`${key} ${JSON.stringify(value)}`];
  });
  return [
    ...[uri, uriTemplate].flatMap((address) => (address ? [`address: ${flat(address)}`] : [])),
    ...(mimeType ? [`type: ${flat(String(mimeType))}`] : []),
    ...(size === undefined ? [] : [`size: ${size} bytes`]),
    ...(hints.length > 0 ? [`the server says: ${hints.join('; ')}`] : []),
  ];
}

const argumentsOf = ({ arguments: given }: Item) =>
  Array.isArray(given) ? (given as NonNullable<Item['arguments']>) : [];

const promptLines = (item: Item): Line[] =>
  argumentsOf(item).map(({ name, required, description }) => [
    0,
    wordsOf(name, required ? 'required' : '', description),
  ]);

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const DEEPEST = 6;

/** One line a property, those of an object below it; what is no plain schema is shown as the JSON that it is. */
function propertyLines(schema: Schema, depth = 0): Line[] {
  const { properties, required } = schema;
  if (!isSchema(properties)) return isBare(schema) ? [] : [[depth, JSON.stringify(schema)]];
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  return Object.entries(properties).flatMap(([name, value]): Line[] => {
    const property = isSchema(value) ? value : {};
    const facts = [typeOf(property), isRequired(name) && 'required', ...limitsOf(property)].filter(Boolean).join(', ');
    const inner = isSchema(property.items) ? property.items : property;
    const below = isSchema(inner.properties) && depth < DEEPEST ? propertyLines(inner, depth + 1) : [];
    return [[depth, wordsOf(name, facts, property.description)], ...below];
  });
}

/** `{"type":"object"}`: it takes nothing, or says nothing of what it takes. */
const isBare = (schema: Schema): boolean =>
  Object.keys(schema).every((key) => /^(type|\$schema|additionalProperties)$/.test(key));

const wordsOf = (name: string, facts: string, description: unknown): string =>
  `${flat(name)}${facts ? ` (${flat(facts)})` : ''}${description ? `: ${flat(String(description))}` : ''}`;

function typeOf(schema: Schema): string {
  const { type, items } = schema;
  if (type === 'array' && isSchema(items)) return `list of ${typeOf(items) || 'anything'}`;
  if (Array.isArray(type)) return type.join(' or ');
  if (typeof type === 'string') return type;
  const choice = [schema.anyOf, schema.oneOf].find(Array.isArray) as unknown[] | undefined;
  if (choice)
    return [...new Set(choice.map((each) => (isSchema(each) ? typeOf(each) : '')).filter(Boolean))].join(' or ');
  return typeof schema.$ref === 'string' ? schema.$ref : '';
}

const LIMITS: readonly (readonly [key: string, words: string])[] = [
  ['const', 'always'],
  ['default', 'default'],
  ['format', 'format'],
  ['pattern', 'pattern'],
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['minLength', 'characters at least'],
  ['maxLength', 'characters at most'],
  ['minItems', 'items at least'],
  ['maxItems', 'items at most'],
];

function limitsOf(schema: Schema): string[] {
  const choices = Array.isArray(schema.enum)
    ? [`one of ${schema.enum.map((each) => JSON.stringify(each)).join(' ')}`]
    : [];
  const limits = LIMITS.flatMap(([key, words]) =>
    schema[key] === undefined ? [] : [`${words} ${JSON.stringify(schema[key])}`],
  );
  return [...choices, ...limits];
}

/** A line to begin with. */
function usageOf(kind: Kind, server: string, item: Item): string {
  const { name = '', uri = '', inputSchema } = item;
  const required = inputSchema && Array.isArray(inputSchema.required) ? inputSchema.required.map(String) : [];
  const pairs = (names: readonly string[]): string[] => names.map((each) => `${each}=…`);
  const line = (verb: string, what: string, names: readonly string[] = []): string =>
    [commandText(['troupe', verb, server, what]), ...pairs(names)].join(' ');
  if (kind === 'tools') return line('call', name, required);
  if (kind === 'prompts')
    return line(
      'prompt',
      name,
      argumentsOf(item).flatMap((each) => (each.required ? [each.name] : [])),
    );
  return kind === 'resources' ? line('read', uri) : '';
}
