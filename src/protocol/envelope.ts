// Finds the six members of a JSON-RPC message that matter, and says what is wrong with them as JSON-RPC.
// All the rest of the message is only checked to be JSON; unknown members are ignored.

import { isText, type Span } from './json.ts';
import {
  broken,
  CLOSE_BRACE,
  COMMA,
  colonEnd,
  OPEN_BRACE,
  QUOTE,
  spaceEnd,
  stringEnd,
  TOO_DEEP,
  valueEnd,
} from './scan.ts';

type Field = 'jsonrpc' | 'id' | 'method' | 'params' | 'result' | 'error';

export type Envelope = {
  /** The index after the message, or the scanner's negative answer. */
  end: number;
  isObject: boolean;
  /** A member that was given more than once. */
  twice: Field | undefined;
} & { [field in Field]: Span | undefined };

export function readEnvelope(line: Buffer, from: number, room: number): Envelope {
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

/** "\u0069d" is an id too: what one reader overlooks and the next one sees is how messages are smuggled. */
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
export function usableId(line: Buffer, { id, twice }: Envelope): string | undefined {
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

/** What keeps this JSON value from being a JSON-RPC message as MCP has them, if anything does. */
export function complaint(line: Buffer, envelope: Envelope, id: string | undefined): string | undefined {
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
