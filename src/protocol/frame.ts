// Reads one line as a JSON-RPC message in one pass: the whole grammar and the depth are checked, nothing is parsed,
// and `params`, `result` and `error` come out as the very bytes that came in.

import { isUtf8 } from 'node:buffer';
import { complaint, type Envelope, readEnvelope, usableId } from './envelope.ts';
import { type Span, textOf } from './json.ts';
import { brokenAt, CLOSE_BRACKET, COMMA, OPEN_BRACKET, spaceEnd, TOO_DEEP } from './scan.ts';

/** `id` is the raw JSON text (`17`, `"abc"`), so that it is matched and echoed exactly. */
export type Frame =
  | { readonly kind: 'request'; readonly id: string; readonly method: string; readonly params?: Buffer }
  | { readonly kind: 'notification'; readonly method: string; readonly params?: Buffer }
  | { readonly kind: 'result'; readonly id: string; readonly result: Buffer }
  /** The id is `null` when the other side could not tell which request it refuses. */
  | { readonly kind: 'error'; readonly id: string; readonly error: Buffer }
  | { readonly kind: 'batch'; readonly frames: Frame[] }
  | Malformed;

/** `id` is the request to which an error is owed; a response is never answered, so a malformed one has no `id` here. */
export type Malformed = {
  readonly kind: 'malformed';
  readonly code: -32700 | -32600;
  readonly why: string;
  readonly id?: string;
};

/** A line of tiny messages would otherwise cost many times its size in memory. */
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

/** Some Windows runtimes begin their output with one; RFC 8259 lets a reader ignore it. */
const hasByteOrderMark = (line: Buffer): boolean => line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf;
