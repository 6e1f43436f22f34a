// The headers that repeat what the body says, so that what stands between can route by them. We act on the body; headers
// that say something else are refused, or two parties would act on two different requests.

import type { IncomingHttpHeaders } from 'node:http';
import type { Frame } from '../../protocol/frame.ts';
import { decodeHeader, nameKeyOf } from '../../protocol/headers.ts';
import { member, stringOf, textAt } from '../../protocol/json.ts';
import type { HostSession } from '../../sessions/host.ts';
import type { HeaderDeclarations } from './visit.ts';

const LONGEST_SHOWN = 64;

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
