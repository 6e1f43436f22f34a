// Writes JSON-RPC messages around payloads that stay bytes: one allocation for each message, and one newline, at its end.

import { withProgressToken } from './edit.ts';
import { mayHaveMeta } from './json.ts';
import { CLOSE_BRACE, OPEN_BRACE, spaceEnd } from './scan.ts';

export function requestFrame(id: number, method: string, params?: Buffer): Buffer {
  return callFrame(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`, params);
}

/**
 * A request whose progress we want to hear of: `_meta.progressToken` is its id. Most params have no `_meta`, and then the
 * token is written with the frame, without a copy of the params.
 */
export function progressFrame(id: number, method: string, params: Buffer): Buffer {
  if (mayHaveMeta(params) || params[0] !== OPEN_BRACE) return requestFrame(id, method, withProgressToken(params, id));
  const comma = params[spaceEnd(params, 1)] === CLOSE_BRACE ? '' : ',';
  const head = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":{"_meta":{"progressToken":${id}}${comma}`;
  return frame(head, params, 1);
}

/** An object whose last member has that value: `head` is all that stands before it. */
export function wrapped(head: string, value: Buffer): Buffer {
  const start = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(start + value.length + 1);
  bytes.write(head);
  bytes.set(value, start);
  bytes[bytes.length - 1] = CLOSE_BRACE;
  return bytes;
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

/** The payload is written from its byte `from` on: a head may already have its opening brace. */
function frame(head: string, payload: Buffer, from = 0): Buffer {
  const start = Buffer.byteLength(head);
  const end = start + payload.length - from;
  const bytes = Buffer.allocUnsafe(end + 2);
  bytes.set(payload, start - from); // a part of it would be a buffer of its own; the head is written over what is too much
  bytes.write(head);
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
