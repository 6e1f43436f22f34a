// Writes JSON-RPC messages around payloads that stay bytes: one allocation for each message, and one newline, at its end.

import { digitsOf, putDigits } from './digits.ts';
import { withProgressToken } from './edit.ts';
import { mayHaveMeta } from './json.ts';
import { CLOSE_BRACE, OPEN_BRACE, spaceEnd } from './scan.ts';

export function requestFrame(id: number, method: string, params?: Buffer): Buffer {
  return callFrame(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`, params);
}

const OPENING = Buffer.from('{"jsonrpc":"2.0","id":');
const progressOf = knownBytes((method) => `,"method":${JSON.stringify(method)},"params":{"_meta":{"progressToken":`);
const META_END = Buffer.from('}');
const META_END_COMMA = Buffer.from('},');

/**
 * A request whose progress we want to hear of: `_meta.progressToken` is its id. Most params have no `_meta`, and then the
 * token is written with the frame, without a copy of the params.
 */
export function progressFrame(id: number, method: string, params: Buffer): Buffer {
  if (mayHaveMeta(params) || params[0] !== OPEN_BRACE) return requestFrame(id, method, withProgressToken(params, id));
  const after = params[spaceEnd(params, 1)] === CLOSE_BRACE ? META_END : META_END_COMMA;
  const between = progressOf(method);
  const start = OPENING.length + between.length + after.length + 2 * digitsOf(id);
  const bytes = framed(start, params, 1);
  bytes.set(OPENING);
  const first = putDigits(bytes, OPENING.length, id);
  bytes.set(between, first);
  bytes.set(after, putDigits(bytes, first + between.length, id));
  return bytes;
}

/** An object whose last member has that value: `head` is all that stands before it. */
export function wrapped(head: Buffer, value: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + value.length + 1);
  bytes.set(head);
  bytes.set(value, head.length);
  bytes[bytes.length - 1] = CLOSE_BRACE;
  return bytes;
}

/** So many are kept, and only short ones: names and methods of strangers may be without end. */
const MOST_KNOWN = 1_024;
const MOST_CHARACTERS = 128;

/** Bytes that are made of a name or a method, and kept: most calls are about few of them. */
export function knownBytes(textOf: (name: string) => string): (name: string) => Buffer {
  const known = new Map<string, Buffer>();
  return (name) => {
    const before = known.get(name);
    if (before) return before;
    const bytes = Buffer.from(textOf(name));
    if (name.length > MOST_CHARACTERS) return bytes;
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(name, bytes);
    return bytes;
  };
}

export function notificationFrame(method: string, params?: Buffer): Buffer {
  return callFrame(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`, params);
}

/** A request whose id is given as JSON text. */
export function askFrame(rawId: string, method: string, params: Buffer): Buffer {
  return callFrame(`{"jsonrpc":"2.0","id":${rawId},"method":${JSON.stringify(method)}`, params);
}

export function resultFrame(rawId: string, result: Buffer): Buffer {
  return frame(`{"jsonrpc":"2.0","id":${rawId},"result":`, result);
}

export function errorFrame(rawId: string, error: Buffer): Buffer {
  return frame(`{"jsonrpc":"2.0","id":${rawId},"error":`, error);
}

function callFrame(head: string, params: Buffer | undefined): Buffer {
  return params ? frame(`${head},"params":`, params) : Buffer.from(`${head}}\n`);
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

function frame(head: string, payload: Buffer): Buffer {
  const bytes = framed(Buffer.byteLength(head), payload, 0);
  bytes.write(head);
  return bytes;
}

/**
 * A frame whose head of `start` bytes is still to be written. The payload is there from its byte `from` on: a head may already
 * have its opening brace.
 */
function framed(start: number, payload: Buffer, from: 0 | 1): Buffer {
  const end = start + payload.length - from;
  const bytes = Buffer.allocUnsafe(end + 2);
  bytes.set(payload, start - from); // a part of it would be a buffer of its own; the head is written over what is too much
  bytes[end] = CLOSE_BRACE;
  bytes[end + 1] = NEWLINE;
  if (payload.indexOf(NEWLINE) >= 0 || payload.indexOf(RETURN) >= 0) flatten(bytes.subarray(start, end));
  return bytes;
}

/** Pretty-printed JSON has newlines between tokens; on the wire they would end the frame (for some readers `\r` does). */
function flatten(bytes: Buffer): void {
  for (const breaker of [NEWLINE, RETURN]) {
    for (let at = bytes.indexOf(breaker); at >= 0; at = bytes.indexOf(breaker, at + 1)) bytes[at] = SPACE;
  }
}
