// Sets or takes away one member of a JSON object's bytes and leaves every other byte as it came. Afterwards there is one
// such member, or none: of a name that is given twice readers disagree on which value counts. What is no object stays.

import { isText } from './json.ts';
import { CLOSE_BRACE, COMMA, colonEnd, OPEN_BRACE, spaceEnd, stringEnd, valueEnd } from './scan.ts';

/** Deeper than any frame we accept, and still bounded. */
const MAX_DEPTH = 10_000;

/** The object with `_meta[key]` set to this JSON text. */
export const withMeta = (object: Buffer, key: string, value: string): Buffer =>
  withInner(object, ['_meta', key], value);

/** The object with one member of one of its members set. An outer one that is no object, or is given twice, is replaced. */
export function withInner(object: Buffer, [outer, key]: readonly [string, string], value: string): Buffer {
  const entries = entriesOf(object);
  return entries
    ? put(object, entries, outer, withMember(objectIn(object, entries, outer) ?? EMPTY, key, value))
    : object;
}

/** The object without that key of its `_meta`; a `_meta` that had nothing else is gone. */
export function withoutMeta(object: Buffer, key: string): Buffer {
  const meta = objectIn(object, entriesOf(object) ?? [], '_meta');
  const rest = meta && withoutMember(meta, key);
  if (!rest || rest === meta) return object;
  return entriesOf(rest)?.length === 0 ? withoutMember(object, '_meta') : withMember(object, '_meta', rest);
}

/** The object with this member: in the place of the one it had, else as its last. */
export function withMember(object: Buffer, key: string, value: Buffer | string): Buffer {
  const entries = entriesOf(object);
  return entries ? put(object, entries, key, typeof value === 'string' ? Buffer.from(value) : value) : object;
}

function put(object: Buffer, entries: readonly Entry[], key: string, value: Buffer): Buffer {
  const known = entries.filter(named(object, key));
  const [first] = known;
  if (known.length > 1) return withMember(withoutMember(object, key), key, value);
  if (first) return Buffer.concat([object.subarray(0, first.from), value, object.subarray(first.to)]);
  const end = entries.at(-1)?.to ?? spaceEnd(object, 0) + 1;
  const name = `${entries.length > 0 ? ',' : ''}${JSON.stringify(key)}:`;
  return Buffer.concat([object.subarray(0, end), Buffer.from(name), value, object.subarray(end)]);
}

/** The object without any member of that name; the very same bytes if it has none. */
export function withoutMember(object: Buffer, key: string): Buffer {
  const entries = entriesOf(object) ?? [];
  const isGone = named(object, key);
  const kept = entries.filter((entry) => !isGone(entry));
  if (kept.length === entries.length) return object;
  const parts = kept.flatMap(({ keyFrom, to, next }, index) => [
    object.subarray(keyFrom, to),
    object.subarray(to, index < kept.length - 1 ? next : to), // what stood between it and its neighbour
  ]);
  const [start, end] = [entries[0]?.keyFrom ?? 0, entries.at(-1)?.to ?? 0];
  return Buffer.concat([object.subarray(0, start), ...parts, object.subarray(end)]);
}

/** Where a member's name, its value and the next member begin, and where its name and value end. */
type Entry = {
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly from: number;
  readonly to: number;
  readonly next: number;
};

const EMPTY = Buffer.from('{}');

/** The value of that member, if it has one and that is an object. */
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
