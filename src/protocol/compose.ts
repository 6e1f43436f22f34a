// Writes JSON-RPC messages around payloads that stay bytes: one allocation each, one newline each, and that at the end.

import { spansOf } from './json.ts';
import { BACKSLASH, CLOSE_BRACE, OPEN_BRACE, spaceEnd } from './scan.ts';

export function requestFrame(id: number, method: string, params?: Buffer): Buffer {
  return callFrame(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`, params);
}

/**
 * A request whose progress we want to hear of: `_meta.progressToken` is the id. Most params have no `_meta`, and then the
 * token goes in while the frame is written, without a copy of its own.
 */
export function progressFrame(id: number, method: string, params: Buffer): Buffer {
  if (mayHaveMeta(params) || params[0] !== OPEN_BRACE) return requestFrame(id, method, withProgressToken(params, id));
  const comma = params[spaceEnd(params, 1)] === CLOSE_BRACE ? '' : ',';
  const head = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":{"_meta":{"progressToken":${id}}${comma}`;
  return frame(head, params, 1);
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

/** `from` leaves out the first bytes of the payload, which the head already has. */
function frame(head: string, payload: Buffer, from = 0): Buffer {
  const start = Buffer.byteLength(head);
  const end = start + payload.length - from;
  const bytes = Buffer.allocUnsafe(end + 2);
  bytes.write(head);
  payload.copy(bytes, start, from);
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

const META = Buffer.from('_meta');
const ESCAPE = Buffer.from('\\u');

/**
 * Sets `_meta.progressToken` and leaves every other byte alone. Params that are no object, or whose `_meta` is no object
 * or is given twice, come back as they are.
 */
export function withProgressToken(params: Buffer, token: number): Buffer {
  const start = spaceEnd(params, 0);
  if (params[start] !== OPEN_BRACE) return params;
  if (!mayHaveMeta(params)) return insertMeta(params, start, token);
  const [meta, anotherMeta] = spansOf(params, '_meta');
  if (!meta) return insertMeta(params, start, token);
  if (anotherMeta || params[meta.from] !== OPEN_BRACE) return params;
  const [old, anotherOld] = spansOf(params.subarray(meta.from, meta.to), 'progressToken');
  if (anotherOld) return params;
  if (!old) return insert(params, meta.from, `"progressToken":${token}`);
  return splice(params, meta.from + old.from, meta.from + old.to, String(token));
}

/** Only a \u escape can spell the key differently, so most params need not be walked. */
const mayHaveMeta = (params: Buffer): boolean =>
  params.indexOf(META) >= 0 || (params.indexOf(BACKSLASH) >= 0 && params.indexOf(ESCAPE) >= 0);

const insertMeta = (params: Buffer, brace: number, token: number): Buffer =>
  insert(params, brace, `"_meta":{"progressToken":${token}}`);

/** Adds a first member to the object that opens at `brace`. */
function insert(bytes: Buffer, brace: number, memberText: string): Buffer {
  const isEmpty = bytes[spaceEnd(bytes, brace + 1)] === CLOSE_BRACE;
  return splice(bytes, brace + 1, brace + 1, isEmpty ? memberText : `${memberText},`);
}

function splice(bytes: Buffer, from: number, to: number, text: string): Buffer {
  const out = Buffer.allocUnsafe(bytes.length - (to - from) + text.length);
  bytes.copy(out, 0, 0, from);
  out.write(text, from, 'latin1');
  bytes.copy(out, from + text.length, to);
  return out;
}
