// Looks into JSON bytes without parsing them: the spans of members and elements, as sub-buffers that share memory.
// Made for bytes that `readFrame` or `isJsonObject` has accepted; of other bytes it sees what comes before the first fault.

import { isUtf8 } from 'node:buffer';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  colonEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  spaceEnd,
  stringEnd,
  valueEnd,
} from './scan.ts';

/** Deeper than any frame we accept, and still bounded. */
export const MAX_DEPTH = 10_000;
/** A frame puts levels of its own around an object, so this is a little less than a frame may have. */
const MAX_OBJECT_DEPTH = 120;

/** Whether bytes of a caller may be put into a frame as they are: one JSON object, valid, not too deep. */
export function isJsonObject(bytes: Buffer): boolean {
  const start = spaceEnd(bytes, 0);
  if (bytes[start] !== OPEN_BRACE || !isUtf8(bytes)) return false;
  const end = valueEnd(bytes, start, MAX_OBJECT_DEPTH);
  return end > 0 && spaceEnd(bytes, end) === bytes.length;
}

export function* members(object: Buffer): Generator<[key: string, value: Buffer]> {
  let at = inside(object, OPEN_BRACE);
  while (at > 0) {
    const keyTo = stringEnd(object, at);
    const from = keyTo < 0 ? keyTo : colonEnd(object, keyTo);
    const to = from < 0 ? from : valueEnd(object, from, MAX_DEPTH);
    if (to < 0) return;
    yield [textOf(object, at, keyTo), object.subarray(from, to)];
    at = next(object, to);
  }
}

export function* elements(array: Buffer): Generator<Buffer> {
  let from = inside(array, OPEN_BRACKET);
  while (from > 0) {
    const to = valueEnd(array, from, MAX_DEPTH);
    if (to < 0) return;
    yield array.subarray(from, to);
    from = next(array, to);
  }
}

/**
 * The value of `key`. A key that is given twice counts as absent: JSON readers disagree on which one is meant, and what
 * we check must be what the server acts on.
 */
export function member(object: Buffer, key: string): Buffer | undefined {
  const [span, another] = spansOf(object, key);
  return span && !another ? object.subarray(span.from, span.to) : undefined;
}

/** The text at that path of members, if each of them is there exactly once. */
export function textAt(object: Buffer, path: readonly string[]): string | undefined {
  const span = spanAt(object, path);
  return span && stringOf(object.subarray(span.from, span.to));
}

/** Where the value at that path of members lies, if each of them is there exactly once. */
export function spanAt(object: Buffer, path: readonly string[]): Span | undefined {
  let from = 0;
  let to = object.length;
  for (const key of path) {
    const [span, another] = spansOf(object.subarray(from, to), key);
    if (!span || another) return undefined;
    to = from + span.to;
    from += span.from;
  }
  return { from, to };
}

const ESCAPE = Buffer.from('\\u');

/** Whether a member of that name can be in there. Only a \u escape can spell it differently: most objects need no walk. */
export const mayHave = (json: Buffer, name: Buffer): boolean =>
  json.indexOf(name) >= 0 || (json.indexOf(BACKSLASH) >= 0 && json.indexOf(ESCAPE) >= 0);

const META = Buffer.from('_meta');
export const mayHaveMeta = (params: Buffer): boolean => mayHave(params, META);

export function stringOf(value: Buffer): string | undefined {
  return stringEnd(value, 0) === value.length ? textOf(value, 0, value.length) : undefined;
}

/** What a text says that somebody else may have written: undefined if it is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export type Span = { readonly from: number; readonly to: number };

/** Where the values of `key` lie: none, one, or the first two. */
export function spansOf(object: Buffer, key: string): Span[] {
  const spans: Span[] = [];
  let at = inside(object, OPEN_BRACE);
  while (at > 0 && spans.length < 2) {
    const keyTo = stringEnd(object, at);
    const from = keyTo < 0 ? keyTo : colonEnd(object, keyTo);
    const to = from < 0 ? from : valueEnd(object, from, MAX_DEPTH);
    if (to < 0) break;
    if (isText(object, { from: at, to: keyTo }, key)) spans.push({ from, to });
    at = next(object, to);
  }
  return spans;
}

/** Whether the JSON string in this span says `text`, however it is escaped. */
export function isText(bytes: Buffer, { from, to }: Span, text: string): boolean {
  const size = to - from - 2;
  // Each character takes one byte to six; it takes one only if it is ASCII and not escaped.
  if (size < text.length || size > 6 * text.length) return false;
  if (size > text.length) return !isPlainAscii(bytes, from, to) && textOf(bytes, from, to) === text;
  for (let at = 0; at < size; at++) if (bytes[from + 1 + at] !== text.charCodeAt(at)) return false;
  return true;
}

function isPlainAscii(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === BACKSLASH || byte > 0x7f) return false;
  }
  return true;
}

/** The text of the valid JSON string in this span, quotes included. */
export function textOf(bytes: Buffer, from: number, to: number): string {
  if (hasEscape(bytes, from, to)) return JSON.parse(bytes.toString('utf8', from, to));
  return bytes.toString('utf8', from + 1, to - 1);
}

function hasEscape(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] === BACKSLASH) return true;
  return false;
}

/** Where the first member or element begins, or -1 if these bytes are no such container. */
function inside(bytes: Buffer, opener: number): number {
  const at = spaceEnd(bytes, 0);
  return bytes[at] === opener ? spaceEnd(bytes, at + 1) : -1;
}

/** Where the next member or element begins, or -1 if there is none. */
function next(bytes: Buffer, from: number): number {
  const at = spaceEnd(bytes, from);
  return bytes[at] === COMMA ? spaceEnd(bytes, at + 1) : -1;
}

/** Names are compared in memory, and no honest caller sends more. */
const MAX_NAMES = 100_000;

/**
 * Whether valid JSON means the same to every reader: true when no object at any depth has a name twice, however it is
 * escaped, and there are not too many names to tell. One pass.
 */
export function namesEachOnce(json: Buffer): boolean {
  const open: (Set<string> | undefined)[] = [];
  let count = 0;
  let at = 0;
  while (at < json.length) {
    const byte = json[at];
    if (byte !== QUOTE) {
      if (byte === OPEN_BRACE) open.push(new Set());
      else if (byte === OPEN_BRACKET) open.push(undefined);
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) open.pop();
      at++;
      continue;
    }
    const end = stringEnd(json, at);
    if (end < 0) return false;
    // A string before a colon is a name; nothing else is.
    if (colonEnd(json, end) > 0 && (++count > MAX_NAMES || !isNew(open.at(-1), textOf(json, at, end)))) return false;
    at = end;
  }
  return true;
}

const isNew = (names: Set<string> | undefined, name: string): boolean =>
  names !== undefined && names.size < names.add(name).size;
