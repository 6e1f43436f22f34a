// Arguments of a tool that its definition wants repeated in HTTP headers (`x-mcp-header`), so that what stands between us
// and the server can route by them. A definition whose wishes cannot be met is not offered at all.

import type { Call } from '../../calls/call.ts';
import type { Entry } from '../../catalog/fetch.ts';
import { encodeHeader, nameKeyOf } from '../../protocol/headers.ts';
import { member as memberOf, stringOf } from '../../protocol/json.ts';
import type { Member } from '../member.ts';

/** `path` leads to the argument, `header` is what `Mcp-Param-` is followed by. */
export type Mirror = { readonly path: readonly string[]; readonly header: string };

const MARK = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const PRIMITIVES = new Set<unknown>(['string', 'number', 'integer', 'boolean']);

/** The headers that repeat what the body of a request says. */
export function mirroredHeaders(call: Call, tools: readonly Entry[]): Record<string, string> {
  const headers: Record<string, string> = { 'mcp-method': encodeHeader(call.method) };
  const name = memberOf(call.params, nameKeyOf(call.method) ?? '');
  const text = name && stringOf(name);
  if (text !== undefined) headers['mcp-name'] = encodeHeader(text);
  const mirrors = call.method === 'tools/call' && text !== undefined ? mirrorsIn(tools).get(text) : undefined;
  for (const { path, header } of mirrors ?? []) {
    const value = primitiveAt(call.params, ['arguments', ...path]);
    if (value !== undefined) headers[`mcp-param-${header.toLowerCase()}`] = encodeHeader(value);
  }
  return headers;
}

/** The tools that can be offered over HTTP; of the others a person is told. */
export function offerable({ config, logger }: Member, tools: Entry[]): Entry[] {
  if (config.transport !== 'http') return tools;
  return tools.filter(({ name, bytes }) => {
    const mirrors = mirrorsOf(bytes);
    if (typeof mirrors === 'string') logger.warn(`tool ${name.slice(0, 128)} is left out: ${mirrors}`);
    return typeof mirrors !== 'string';
  });
}

const known = new WeakMap<readonly Entry[], Map<string, Mirror[]>>();

function mirrorsIn(tools: readonly Entry[]): Map<string, Mirror[]> {
  const found = known.get(tools) ?? new Map<string, Mirror[]>();
  if (known.has(tools)) return found;
  known.set(tools, found);
  for (const { name, bytes } of tools) {
    const mirrors = mirrorsOf(bytes);
    if (typeof mirrors !== 'string' && mirrors.length > 0) found.set(name, mirrors);
  }
  return found;
}

/** What a definition wants mirrored, or why that cannot be. */
export function mirrorsOf(definition: Buffer): Mirror[] | string {
  const schema = definition.includes(MARK) ? memberOf(definition, 'inputSchema') : undefined;
  if (!schema) return [];
  const mirrors: Mirror[] = [];
  const complaint = visit(JSON.parse(schema.toString()), [], true, mirrors);
  if (complaint !== undefined) return complaint;
  const taken = new Set<string>();
  for (const { header } of mirrors) {
    if (taken.has(header.toLowerCase())) return `its ${MARK} ${JSON.stringify(header)} is given twice`;
    taken.add(header.toLowerCase());
  }
  return mirrors;
}

/** Only a chain of `properties` says where an argument is; a mark anywhere else in the schema is a fault. */
function visit(node: unknown, path: string[], isArgument: boolean, mirrors: Mirror[]): string | undefined {
  if (node === null || typeof node !== 'object') return undefined;
  const schema = node as Record<string, unknown>;
  if (!Array.isArray(node) && MARK in schema) {
    const complaint = complaintOf(schema, path, isArgument);
    if (complaint !== undefined) return complaint;
    mirrors.push({ path, header: String(schema[MARK]) });
  }
  for (const [key, value] of Object.entries(schema)) {
    const complaint =
      key === 'properties' && value !== null && typeof value === 'object'
        ? first(Object.entries(value), ([name, each]) => visit(each, [...path, name], isArgument, mirrors))
        : DATA.has(key)
          ? undefined
          : visit(value, path, false, mirrors);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
}

/** Values of these keys are data, not schemas. */
const DATA = new Set(['default', 'const', 'enum', 'examples']);

function complaintOf({ type, [MARK]: mark }: Record<string, unknown>, path: string[], isArgument: boolean) {
  const where = path.join('.').slice(0, 80) || 'the schema itself';
  if (!isArgument || path.length === 0) return `${MARK} at ${where} is on no argument`;
  if (typeof mark !== 'string' || !TOKEN.test(mark)) return `${MARK} of ${where} is no name of a header`;
  return PRIMITIVES.has(type) ? undefined : `${MARK} of ${where} is on no string, number or boolean`;
}

function first<T>(items: T[], complain: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const complaint = complain(item);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
}

/** The text of a string, number or boolean; undefined for null, for anything else, and for nothing. */
function primitiveAt(json: Buffer, path: readonly string[]): string | undefined {
  let value: Buffer | undefined = json;
  for (const key of path) value = value && memberOf(value, key);
  const raw = value?.toString() ?? 'null';
  if (raw.startsWith('"')) return JSON.parse(raw);
  if (raw === 'true' || raw === 'false' || /^-?\d+$/.test(raw)) return raw;
  return /^[-\d]/.test(raw) ? String(Number(raw)) : undefined;
}
