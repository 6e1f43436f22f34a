// What the headers of a request say: which content it has and takes, and, repeated from the body, what it asks for, so that a
// proxy can route by that. We act on the body; headers that contradict it are refused, or proxy and daemon would act on two
// different requests.

import type { IncomingHttpHeaders } from 'node:http';
import type { Frame } from '../../protocol/frame.ts';
import { decodeHeader, nameKeyOf } from '../../protocol/headers.ts';
import { member, stringOf, textAt } from '../../protocol/json.ts';
import { VIA } from '../../protocol/version.ts';
import type { HostSession } from '../../sessions/host.ts';
import type { HeaderDeclarations } from './context.ts';

const LONGEST_SHOWN = 64;

/** The name of the daemon that sent the request, if one did. */
export const viaOf = (headers: IncomingHttpHeaders): string => String(headers[VIA] ?? '');

/** What `Mcp-Method` or `Mcp-Name` say against the body, in a sentence. Neither need be sent. */
export function mismatchOf(headers: IncomingHttpHeaders, frame: Frame): string | undefined {
  const { 'mcp-method': method, 'mcp-name': name } = headers;
  if (method === undefined && name === undefined) return undefined;
  if (frame.kind !== 'request' && frame.kind !== 'notification') return undefined;
  if (method !== undefined && !says(method, frame.method)) return mismatch('Mcp-Method', method, frame.method);
  const key = nameKeyOf(frame.method);
  if (name === undefined || key === undefined) return undefined;
  const named = frame.params && textAt(frame.params, [key]);
  return named !== undefined && says(name, named) ? undefined : mismatch('Mcp-Name', name, named);
}

/** The same for the parameters that a tool wants repeated. Headers that no tool declares are none of our business. */
export function paramMismatchOf(
  headers: IncomingHttpHeaders,
  frame: Extract<Frame, { kind: 'request' }>,
  declarations: HeaderDeclarations,
  session: HostSession,
): string | undefined {
  if (frame.method !== 'tools/call' || !hasParams(headers)) return undefined;
  const tool = frame.params && textAt(frame.params, ['name']);
  const given = frame.params && member(frame.params, 'arguments');
  for (const { header, path } of tool === undefined ? [] : declarations(session, tool)) {
    const value = headers[`mcp-param-${header.toLowerCase()}`];
    if (value === undefined) continue;
    const inBody = path.reduce<Buffer | undefined>((object, key) => object && member(object, key), given);
    // The value may be a secret, so it is not repeated.
    if (!inBody || !saysJson(value, inBody))
      return `Header mismatch: Mcp-Param-${header} does not match the value in the body`;
  }
  return undefined;
}

function hasParams(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (name.startsWith('mcp-param-')) return true;
  return false;
}

const says = (header: string | string[], text: string): boolean => decodeHeader(header) === text;

/** Numbers may be written in more than one way; `null` is never sent. */
function saysJson(header: string | string[], value: Buffer): boolean {
  const text = decodeHeader(header);
  if (text === undefined) return false;
  const wanted = stringOf(value) ?? value.toString();
  if (text === wanted) return wanted !== 'null' || stringOf(value) !== undefined;
  return NUMBER.test(text) && NUMBER.test(value.toString()) && Number(text) === Number(wanted);
}

const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

function mismatch(name: string, header: string | string[], body: string | undefined): string {
  const shown = (text: string | undefined): string =>
    text === undefined ? 'nothing' : text.length > LONGEST_SHOWN ? `'${text.slice(0, LONGEST_SHOWN)}…'` : `'${text}'`;
  return `Header mismatch: ${name} header value ${shown(String(header))} does not match body value ${shown(body)}`;
}

// ── Content ──────────────────────────────────────────────────────────────────

export function isJson({ 'content-type': type }: IncomingHttpHeaders): boolean {
  if (type === 'application/json') return true;
  return type !== undefined && /^application\/json *(;|$)/i.test(type);
}

const BOTH = 'application/json, text/event-stream';

/** The answer may be either, so a host must take both. */
export function acceptsBoth({ accept }: IncomingHttpHeaders): boolean {
  return accept === BOTH || (accepts(accept, 'application/json') && accepts(accept, 'text/event-stream'));
}

export const acceptsEvents = ({ accept }: IncomingHttpHeaders): boolean => accepts(accept, 'text/event-stream');

function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return false;
  if (accept === type) return true;
  const ranges = accept.split(',').map((range) => range.split(';', 1)[0]?.trim().toLowerCase());
  return ranges.includes(type) || ranges.includes('*/*') || ranges.includes(`${type.split('/')[0]}/*`);
}
