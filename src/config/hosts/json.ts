// Puts one entry into a host's JSON file, or brings the entry that is there up to date; every other byte stays.
// Keys of the entry that troupe does not write (a timeout, a list of approved tools) are kept.

import { isDeepStrictEqual } from 'node:util';
import type { Node } from 'jsonc-parser';
import { TroupeError } from '../../protocol/failures.ts';
import { formatComplaint } from '../complaints.ts';
import { isObject } from '../definition.ts';
import { type Document, parseDocument } from '../file/document.ts';
import { insertProperty } from '../file/properties.ts';

export type Entry = {
  readonly path: string;
  readonly text: string;
  readonly key: string;
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
};

/** The keys that say how a server is reached: troupe writes all of them anew. */
const OUR_KEYS = ['type', 'command', 'args', 'env', 'url', 'headers'];
const BYTE_ORDER_MARK = '\uFEFF';

export function withEntry({ path, text, key, name, value }: Entry): string {
  const isEmpty = text.trim() === '';
  const document = parseDocument(path, isEmpty ? '{\n}\n' : text);
  const [complaint] = document.complaints;
  if (complaint)
    throw new TroupeError('invalid', `${formatComplaint(complaint)}; mend the file first, nothing was changed`);
  const servers = objectAt(document, document.tree, key);
  const written = servers
    ? inObject(document, servers, name, value)
    : insertProperty(document.text, document.tree as Node, key, { [name]: value });
  return text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK + written : written;
}

function inObject(document: Document, servers: Node, name: string, value: Entry['value']): string {
  const property = propertyOf(document, servers, name);
  if (!property) return insertProperty(document.text, servers, name, value);
  const [, node] = property.children ?? [];
  const known = valueIn(document, servers, name);
  const others = without(known, (key) => OUR_KEYS.includes(key));
  const env =
    'command' in value ? { ...without(known.env, (key) => key.startsWith('TROUPE_')), ...asObject(value.env) } : {};
  const next = { ...value, ...(Object.keys(env).length > 0 && { env }), ...others };
  return node && !isDeepStrictEqual(known, next) ? replaced(document.text, property, node, next) : document.text;
}

const without = (object: unknown, isOurs: (key: string) => boolean): Record<string, unknown> =>
  Object.fromEntries(Object.entries(asObject(object)).filter(([key]) => !isOurs(key)));

const asObject = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

/** The object under `key` of an object; undefined if there is none yet. */
function objectAt(document: Document, owner: Node | undefined, key: string): Node | undefined {
  if (owner?.type !== 'object')
    throw new TroupeError('invalid', `${document.path} is not a JSON object; nothing was changed`);
  const [, node] = propertyOf(document, owner, key)?.children ?? [];
  if (!node || node.type === 'object') return node;
  throw new TroupeError('invalid', `"${key}" in ${document.path} is not an object; nothing was changed`);
}

/** A key that is there twice is read differently by different readers. */
function propertyOf({ path }: Document, object: Node, key: string): Node | undefined {
  const [found, another] = (object.children ?? []).filter(({ children }) => children?.[0]?.value === key);
  if (!another) return found;
  throw new TroupeError('invalid', `${path} has "${key}" twice; remove one of them first, nothing was changed`);
}

function valueIn(document: Document, servers: Node, name: string): Record<string, unknown> {
  const key = servers.parent?.children?.[0]?.value as string;
  return asObject(asObject(asObject(document.value)[key])[name]);
}

function replaced(text: string, property: Node, node: Node, value: object): string {
  const before = text.slice(text.lastIndexOf('\n', property.offset - 1) + 1, property.offset);
  const margin = /^[ \t]*/.exec(before)?.[0] ?? '';
  const isOneLine = !text.includes('\n');
  const step = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  const written = isOneLine
    ? JSON.stringify(value)
    : JSON.stringify(value, undefined, step).replaceAll('\n', ending + margin);
  return text.slice(0, node.offset) + written + text.slice(node.offset + node.length);
}
