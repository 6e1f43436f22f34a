// The grammar of JSON over bytes: each function answers where the value or token that starts at an index ends.
// A negative answer is a fault: `TOO_DEEP`, or a syntax error whose index `brokenAt` gives.

export const QUOTE = 0x22;
export const OPEN_BRACE = 0x7b;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACE = 0x7d;
export const CLOSE_BRACKET = 0x5d;
export const COMMA = 0x2c;
export const BACKSLASH = 0x5c;
const COLON = 0x3a;

export const TOO_DEEP = -1;
export const broken = (at: number): number => -2 - at;
export const brokenAt = (answer: number): number => -2 - answer;

/** The closing bytes of the containers that are open around the value being scanned. One scan at a time, so one list. */
const closers: number[] = [];

/** The index after the value that starts at `from`. `room` is how many levels of nesting it may have. */
export function valueEnd(bytes: Buffer, from: number, room: number): number {
  let depth = 0;
  let at = from;
  for (;;) {
    const first = bytes[at] ?? 0;
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (depth >= room) return TOO_DEEP;
      const closer = first + 2; // in ASCII both pairs are two apart
      at = spaceEnd(bytes, at + 1);
      if (bytes[at] !== closer) {
        closers[depth++] = closer;
        if (closer === CLOSE_BRACE) at = keyEnd(bytes, at);
        if (at < 0) return at;
        continue;
      }
      at++;
    } else {
      at = first === QUOTE ? stringEnd(bytes, at) : scalarEnd(bytes, at, first);
      if (at < 0) return at;
    }
    for (;;) {
      if (depth === 0) return at;
      at = spaceEnd(bytes, at);
      const closer = closers[depth - 1] ?? 0;
      if (bytes[at] === closer) {
        depth--;
        at++;
      } else if (bytes[at] === COMMA) {
        at = spaceEnd(bytes, at + 1);
        if (closer === CLOSE_BRACE) at = keyEnd(bytes, at);
        if (at < 0) return at;
        break;
      } else return broken(at);
    }
  }
}

/** The index of the value that follows the key at `from`. */
function keyEnd(bytes: Buffer, from: number): number {
  const end = stringEnd(bytes, from);
  return end < 0 ? end : colonEnd(bytes, end);
}

/** The index of the value that follows a key which ended at `from`. */
export function colonEnd(bytes: Buffer, from: number): number {
  const at = spaceEnd(bytes, from);
  return bytes[at] === COLON ? spaceEnd(bytes, at + 1) : broken(at);
}

export function spaceEnd(bytes: Buffer, from: number): number {
  const { length } = bytes; // reading past the end is legal and slow, and every frame has an end
  let at = from;
  while (at < length) {
    const byte = bytes[at] ?? 0;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    at++;
  }
  return at;
}

/** 1 for every byte that a string may hold as it is: no quote, no backslash, no control character. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH),
);
const plain = (byte: number | undefined): number => PLAIN[byte ?? 0] ?? 0;

/** The index after the string that starts at `from`. Four bytes at a time are twice as fast as one; long runs jump. */
export function stringEnd(bytes: Buffer, from: number): number {
  if (bytes[from] !== QUOTE) return broken(from);
  const { length } = bytes;
  let at = from + 1;
  let stride = LONG;
  let jumpAt = at + stride;
  for (;;) {
    const stop = Math.min(jumpAt, length);
    while (
      at + 4 <= stop &&
      (plain(bytes[at]) & plain(bytes[at + 1]) & plain(bytes[at + 2]) & plain(bytes[at + 3])) === 1
    ) {
      at += 4;
    }
    if (at >= length) return broken(length);
    const byte = bytes[at] ?? 0;
    if (plain(byte) === 1) {
      at++;
      if (at < jumpAt) continue;
      const end = longRunEnd(bytes, at);
      if (end - at < LONG) stride *= 4; // text full of escapes: the native searches do not pay, so try them less
      at = end;
      jumpAt = at + stride;
    } else if (byte === QUOTE) return at + 1;
    else if (byte !== BACKSLASH) return broken(at);
    else {
      at = escapeEnd(bytes, at);
      if (at < 0) return at;
    }
  }
}

const LONG = 512;
const WINDOW = 16_384;

/** An index up to which the string surely goes on: natively nothing ends it, and word by word nothing is a control character. */
function longRunEnd(bytes: Buffer, from: number): number {
  const window = bytes.subarray(from, from + WINDOW);
  const quote = window.indexOf(QUOTE);
  const unquoted = quote < 0 ? window : window.subarray(0, quote);
  const backslash = unquoted.indexOf(BACKSLASH);
  const size = (backslash < 0 ? unquoted.length : backslash) & ~15;
  const words = new DataView(window.buffer, window.byteOffset, size);
  let control = 0;
  for (let at = 0; at < size; at += 16) {
    const one = words.getInt32(at, true);
    const two = words.getInt32(at + 4, true);
    const three = words.getInt32(at + 8, true);
    const four = words.getInt32(at + 12, true);
    // The top bit of a byte: it was below 0x20.
    control |= ((one - 0x20202020) & ~one) | ((two - 0x20202020) & ~two);
    control |= ((three - 0x20202020) & ~three) | ((four - 0x20202020) & ~four);
  }
  return (control & 0x80808080) === 0 ? from + size : from;
}

const HEX = Uint8Array.from({ length: 256 }, (_, byte) => Number(/[0-9a-fA-F]/.test(String.fromCharCode(byte))));
const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => Number('"\\/bfnrt'.includes(String.fromCharCode(byte))));

function escapeEnd(bytes: Buffer, from: number): number {
  const kind = bytes[from + 1] ?? 0;
  if (ESCAPES[kind] === 1) return from + 2;
  if (kind !== 0x75) return broken(from);
  for (let at = from + 2; at < from + 6; at++) if (HEX[bytes[at] ?? 0] !== 1) return broken(from);
  return from + 6;
}

function scalarEnd(bytes: Buffer, at: number, first: number): number {
  if (first === 0x74) return wordEnd(bytes, at, 'true');
  if (first === 0x66) return wordEnd(bytes, at, 'false');
  if (first === 0x6e) return wordEnd(bytes, at, 'null');
  return numberEnd(bytes, at);
}

function wordEnd(bytes: Buffer, from: number, word: string): number {
  for (let offset = 1; offset < word.length; offset++) {
    if (bytes[from + offset] !== word.charCodeAt(offset)) return broken(from);
  }
  return from + word.length;
}

function numberEnd(bytes: Buffer, from: number): number {
  let at = bytes[from] === 0x2d ? from + 1 : from;
  if (bytes[at] === 0x30) at++;
  else {
    at = digitsEnd(bytes, at);
    if (at < 0) return at;
  }
  if (bytes[at] === 0x2e) {
    at = digitsEnd(bytes, at + 1);
    if (at < 0) return at;
  }
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const sign = bytes[at + 1];
    return digitsEnd(bytes, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1);
  }
  return at;
}

/** The index after one or more digits. */
function digitsEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) return at === from ? broken(at) : at;
    at++;
  }
}
