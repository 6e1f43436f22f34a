// Changes members of a JSON object's bytes and leaves every other byte as it came.

import { isText, MAX_DEPTH, mayHaveMeta, type Span, spanAt, spansOf, stringOf } from './json.ts';
import { CLOSE_BRACE, COMMA, colonEnd, OPEN_BRACE, spaceEnd, stringEnd, valueEnd } from './scan.ts';

const EMPTY = Buffer.from('{}');

export function splice(bytes: Buffer, { from, to }: Span, value: Buffer | string): Buffer {
  const size = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  const edited = Buffer.allocUnsafe(bytes.length - (to - from) + size);
  bytes.copy(edited, 0, 0, from);
  if (typeof value === 'string') edited.write(value, from);
  else value.copy(edited, from);
  bytes.copy(edited, from + size, to);
  return edited;
}

/** The same object with another text at that path of members; undefined when there is no such text, or two. */
export function withTextAt(object: Buffer, path: readonly string[], text: string): Buffer | undefined {
  const span = spanAt(object, path);
  const isString = span !== undefined && stringOf(object.subarray(span.from, span.to)) !== undefined;
  return isString ? splice(object, span, JSON.stringify(text)) : undefined;
}

// ── Setting and removing members. The edited object has the member once, or not at all, also if it had it twice: readers
// disagree on which of two counts. Bytes that are no object come back as they are.

/** The object with this value for `key`: in the place of the old value, else as the last member. */
export function withMember(object: Buffer, key: string, value: Buffer | string): Buffer {
  const entries = entriesOf(object);
  return entries ? put(object, entries, key, value) : object;
}

/** The object with `object[outer][key]` set. An outer member that is no object, or is given twice, is replaced. */
export function withInner(object: Buffer, [outer, key]: readonly [string, string], value: string): Buffer {
  const entries = entriesOf(object);
  return entries
    ? put(object, entries, outer, withMember(objectIn(object, entries, outer) ?? EMPTY, key, value))
    : object;
}

/** The object without any member of that name; the very same bytes if it has none. */
export function withoutMember(object: Buffer, key: string): Buffer {
  const entries = entriesOf(object) ?? [];
  const isNamed = named(object, key);
  const others = entries.filter((entry) => !isNamed(entry));
  if (others.length === entries.length) return object;
  const parts = others.flatMap(({ keyFrom, to, next }, index) => [
    object.subarray(keyFrom, to),
    object.subarray(to, index < others.length - 1 ? next : to), // the comma, and the white space around it
  ]);
  const [start, end] = [entries[0]?.keyFrom ?? 0, entries.at(-1)?.to ?? 0];
  return Buffer.concat([object.subarray(0, start), ...parts, object.subarray(end)]);
}

/** The object with `_meta[key]` set to this JSON text. */
export const withMeta = (object: Buffer, key: string, value: string): Buffer =>
  withInner(object, ['_meta', key], value);

/** The object without that key of its `_meta`; a `_meta` that had nothing else is gone. */
export function withoutMeta(object: Buffer, key: string): Buffer {
  const meta = objectIn(object, entriesOf(object) ?? [], '_meta');
  const rest = meta && withoutMember(meta, key);
  if (!rest || rest === meta) return object;
  return entriesOf(rest)?.length === 0 ? withoutMember(object, '_meta') : withMember(object, '_meta', rest);
}

// ── The progress token. It is set in every call, so params are walked only if they may have a `_meta`.

/**
 * Sets `_meta.progressToken`. Params that are no object, or whose `_meta` is no object or is given twice, come back as
 * they are.
 */
export function withProgressToken(params: Buffer, token: number): Buffer {
  const start = spaceEnd(params, 0);
  if (params[start] !== OPEN_BRACE) return params;
  const [meta, anotherMeta] = mayHaveMeta(params) ? spansOf(params, '_meta') : [];
  if (!meta) return withFirst(params, start, `"_meta":{"progressToken":${token}}`);
  if (anotherMeta || params[meta.from] !== OPEN_BRACE) return params;
  const [old, anotherOld] = spansOf(params.subarray(meta.from, meta.to), 'progressToken');
  if (anotherOld) return params;
  if (!old) return withFirst(params, meta.from, `"progressToken":${token}`);
  return splice(params, { from: meta.from + old.from, to: meta.from + old.to }, String(token));
}

/** Adds a first member to the object that opens at `brace`. */
function withFirst(bytes: Buffer, brace: number, memberText: string): Buffer {
  const isEmpty = bytes[spaceEnd(bytes, brace + 1)] === CLOSE_BRACE;
  return splice(bytes, { from: brace + 1, to: brace + 1 }, isEmpty ? memberText : `${memberText},`);
}

// ── Where the members of an object lie

/** Where a member's name, its value and the next member begin, and where its name and value end. */
type Entry = {
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly from: number;
  readonly to: number;
  readonly next: number;
};

function put(object: Buffer, entries: readonly Entry[], key: string, value: Buffer | string): Buffer {
  const [first, another] = entries.filter(named(object, key));
  if (another) return withMember(withoutMember(object, key), key, value);
  if (first) return splice(object, first, value);
  const end = entries.at(-1)?.to ?? spaceEnd(object, 0) + 1;
  const name = `${entries.length > 0 ? ',' : ''}${JSON.stringify(key)}:`;
  const added = typeof value === 'string' ? name + value : Buffer.concat([Buffer.from(name), value]);
  return splice(object, { from: end, to: end }, added);
}

/** The value of that member, if it is there once and is an object. */
function objectIn(object: Buffer, entries: readonly Entry[], key: string): Buffer | undefined {
  const [found, another] = entries.filter(named(object, key));
  return found && !another && object[found.from] === OPEN_BRACE ? object.subarray(found.from, found.to) : undefined;
}

/** Undefined for bytes that are no object. */
function entriesOf(object: Buffer): Entry[] | undefined {
  const open = spaceEnd(object, 0);
  if (object[open] !== OPEN_BRACE) return undefined;
  const entries: Entry[] = [];
  let at = spaceEnd(object, open + 1);
  if (object[at] === CLOSE_BRACE) return entries;
  for (;;) {
    const keyTo = stringEnd(object, at);
    const from = keyTo < 0 ? keyTo : colonEnd(object, keyTo);
    const to = from < 0 ? from : valueEnd(object, from, MAX_DEPTH);
    if (to < 0) return undefined;
    const end = spaceEnd(object, to);
    const next = object[end] === COMMA ? spaceEnd(object, end + 1) : end;
    entries.push({ keyFrom: at, keyTo, from, to, next });
    if (next === end) return object[end] === CLOSE_BRACE ? entries : undefined;
    at = next;
  }
}

const named =
  (object: Buffer, key: string) =>
  ({ keyFrom, keyTo }: Entry): boolean =>
    isText(object, { from: keyFrom, to: keyTo }, key);
