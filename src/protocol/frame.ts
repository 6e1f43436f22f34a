// Reads one line as a JSON-RPC message in one pass: the whole grammar and the depth are checked, nothing is parsed,
// and `params`, `result` and `error` come out as the very bytes that came in.

import { isUtf8 } from 'node:buffer';
import { isText, type Span, textOf } from './json.ts';
import {
  broken,
  brokenAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  colonEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  spaceEnd,
  stringEnd,
  TOO_DEEP,
  valueEnd,
} from './scan.ts';

/** `id` is the raw JSON text (`17`, `"abc"`), so that it is matched and echoed exactly. */
export type Frame =
  | { readonly kind: 'request'; readonly id: string; readonly method: string; readonly params?: Buffer }
  | { readonly kind: 'notification'; readonly method: string; readonly params?: Buffer }
  | { readonly kind: 'result'; readonly id: string; readonly result: Buffer }
  /** The id is `null` when the sender of the error could not read the id of the request that it refuses. */
  | { readonly kind: 'error'; readonly id: string; readonly error: Buffer }
  | { readonly kind: 'batch'; readonly frames: Frame[] }
  | Malformed;

/** `id` is that of a request, to which an error is owed. A malformed response has none here: responses are not answered. */
export type Malformed = {
  readonly kind: 'malformed';
  readonly code: -32700 | -32600;
  readonly why: string;
  readonly id?: string;
};

/** The frames of a line of tiny messages would otherwise cost many times its size in memory. */
const MAX_BATCH = 1000;

export function readFrame(line: Buffer, maxDepth = 128): Frame {
  if (!isUtf8(line)) return malformed(-32700, 'the line is not valid UTF-8');
  const at = spaceEnd(line, hasByteOrderMark(line) ? 3 : 0);
  if (line[at] === OPEN_BRACKET) return readBatch(line, at, maxDepth);
  const envelope = readEnvelope(line, at, maxDepth);
  return unreadable(line, envelope, maxDepth) ?? trailing(line, envelope.end) ?? frameOf(line, envelope);
}

/** One bad message does not spoil a batch; bytes that are not JSON, or too deep, do. */
function readBatch(line: Buffer, from: number, maxDepth: number): Frame {
  const frames: Frame[] = [];
  let at = spaceEnd(line, from + 1);
  if (line[at] === CLOSE_BRACKET) return trailing(line, at + 1) ?? malformed(-32600, 'the batch is empty');
  for (;;) {
    const envelope = readEnvelope(line, at, maxDepth - 1);
    const refusal = unreadable(line, envelope, maxDepth);
    if (refusal) return malformed(refusal.code, refusal.why);
    frames.push(frameOf(line, envelope));
    at = spaceEnd(line, envelope.end);
    if (line[at] === CLOSE_BRACKET) return trailing(line, at + 1) ?? { kind: 'batch', frames };
    if (line[at] !== COMMA) return notJson(at);
    if (frames.length === MAX_BATCH) return malformed(-32600, `the batch has more than ${MAX_BATCH} messages`);
    at = spaceEnd(line, at + 1);
  }
}

function frameOf(line: Buffer, envelope: Envelope): Frame {
  const id = usableId(line, envelope);
  const why = complaint(line, envelope, id);
  const { method, params, result, error } = envelope;
  if (why !== undefined) return malformed(-32600, why, result || error ? undefined : id);
  if (result) return { kind: 'result', id: id ?? 'null', result: bytesOf(line, result) };
  if (error) return { kind: 'error', id: id ?? 'null', error: bytesOf(line, error) };
  const name = method ? textOf(line, method.from, method.to) : '';
  if (id === undefined) {
    return params
      ? { kind: 'notification', method: name, params: bytesOf(line, params) }
      : { kind: 'notification', method: name };
  }
  return params
    ? { kind: 'request', id, method: name, params: bytesOf(line, params) }
    : { kind: 'request', id, method: name };
}

const bytesOf = (line: Buffer, { from, to }: Span): Buffer => line.subarray(from, to);

function unreadable(line: Buffer, envelope: Envelope, maxDepth: number): Malformed | undefined {
  if (envelope.end >= 0) return undefined;
  if (envelope.end !== TOO_DEEP) return notJson(brokenAt(envelope.end));
  const id = envelope.method ? usableId(line, envelope) : undefined;
  return malformed(-32600, `the message is nested deeper than ${maxDepth} levels`, id);
}

function trailing(line: Buffer, end: number): Malformed | undefined {
  const at = spaceEnd(line, end);
  return at < line.length ? notJson(at) : undefined;
}

const notJson = (at: number): Malformed => malformed(-32700, `the line is not valid JSON at byte ${at}`);

function malformed(code: Malformed['code'], why: string, id?: string): Malformed {
  return id === undefined ? { kind: 'malformed', code, why } : { kind: 'malformed', code, why, id };
}

/** Some Windows runtimes begin their output with a byte order mark; RFC 8259 lets a reader ignore it. */
const hasByteOrderMark = (line: Buffer): boolean => line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf;

// ── The envelope: the six members of a message that matter. The others are only checked to be JSON.

type Field = 'jsonrpc' | 'id' | 'method' | 'params' | 'result' | 'error';

type Envelope = {
  /** The index after the message, or the scanner's negative answer. */
  end: number;
  isObject: boolean;
  /** A member that was given more than once. */
  twice: Field | undefined;
} & { [field in Field]: Span | undefined };

function readEnvelope(line: Buffer, from: number, room: number): Envelope {
  const envelope = emptyEnvelope();
  envelope.isObject = line[from] === OPEN_BRACE;
  envelope.end = envelope.isObject ? objectEnd(line, from, room, envelope) : valueEnd(line, from, room);
  return envelope;
}

function emptyEnvelope(): Envelope {
  const none = undefined;
  return {
    end: 0,
    isObject: false,
    twice: none,
    jsonrpc: none,
    id: none,
    method: none,
    params: none,
    result: none,
    error: none,
  };
}

function objectEnd(line: Buffer, from: number, room: number, envelope: Envelope): number {
  if (room < 1) return TOO_DEEP;
  let at = spaceEnd(line, from + 1);
  if (line[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    const keyTo = stringEnd(line, at);
    if (keyTo < 0) return keyTo;
    const valueFrom = colonEnd(line, keyTo);
    if (valueFrom < 0) return valueFrom;
    const valueTo = valueEnd(line, valueFrom, room - 1);
    if (valueTo < 0) return valueTo;
    note(envelope, fieldOf(line, { from: at, to: keyTo }), { from: valueFrom, to: valueTo });
    at = spaceEnd(line, valueTo);
    if (line[at] === CLOSE_BRACE) return at + 1;
    if (line[at] !== COMMA) return broken(at);
    at = spaceEnd(line, at + 1);
  }
}

const FIELDS: Field[] = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'];

/** "\u0069d" is an id too: a member that one reader sees and another overlooks is how messages are smuggled. */
function fieldOf(line: Buffer, key: Span): Field | undefined {
  for (const field of FIELDS) if (isText(line, key, field)) return field;
  return undefined;
}

function note(envelope: Envelope, field: Field | undefined, span: Span): void {
  if (!field) return;
  if (envelope[field]) envelope.twice = field;
  envelope[field] = span;
}

/** The raw text of an id that can be matched and echoed without loss: a short string or a safe integer. */
function usableId(line: Buffer, { id, twice }: Envelope): string | undefined {
  if (!id || twice === 'id') return undefined;
  const size = id.to - id.from;
  if (line[id.from] === QUOTE) return size <= MAX_ID_BYTES + 2 ? line.toString('utf8', id.from, id.to) : undefined;
  if (size > MAX_INTEGER_BYTES) return undefined;
  let magnitude = 0;
  for (let at = line[id.from] === MINUS ? id.from + 1 : id.from; at < id.to; at++) {
    const digit = (line[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    magnitude = magnitude * 10 + digit;
  }
  return magnitude <= Number.MAX_SAFE_INTEGER ? line.toString('latin1', id.from, id.to) : undefined;
}

const MAX_ID_BYTES = 256;
const MAX_INTEGER_BYTES = 17;
const MINUS = 0x2d;
const USABLE = `a string of at most ${MAX_ID_BYTES} bytes or an integer within ±(2^53 - 1)`;

/** Why this JSON value is no JSON-RPC message as MCP has them; undefined if it is one. */
function complaint(line: Buffer, envelope: Envelope, id: string | undefined): string | undefined {
  const { jsonrpc, method, result, error, twice } = envelope;
  if (!envelope.isObject) return 'the message is not an object';
  if (twice) return `the message has "${twice}" twice`;
  if (!jsonrpc || line[jsonrpc.from] !== QUOTE || !isText(line, jsonrpc, '2.0')) return '"jsonrpc" is not "2.0"';
  if (method && (result || error)) return 'the message is both a request and a response';
  if (result && error) return 'the response has both a result and an error';
  if (method) return complaintOfRequest(line, envelope, id);
  if (!result && !error) return 'the message has no method, no result and no error';
  if (id !== undefined || (error && isNobody(line, envelope.id))) return undefined;
  return `the response is to nobody: its id is not ${USABLE}`;
}

function complaintOfRequest(line: Buffer, { id: given, method, params }: Envelope, id: string | undefined) {
  if (method && line[method.from] !== QUOTE) return 'the method is not a string';
  if (given && id === undefined) return `the id of the request is not ${USABLE}`;
  // JSON-RPC also has positional params; no version of MCP does.
  if (params && line[params.from] !== OPEN_BRACE) return 'the params are not an object';
  return undefined;
}

/** JSON-RPC has `null`, and MCP since 2025-11-25 no id at all, for an error that answers an unreadable request. */
const isNobody = (line: Buffer, id: Span | undefined): boolean => !id || line[id.from] === 0x6e;
