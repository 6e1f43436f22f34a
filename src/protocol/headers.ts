// The HTTP headers that repeat what a message says (`Mcp-Method`, `Mcp-Name`, `Mcp-Param-…`), so that a proxy can route by
// them. A header takes visible ASCII only: other text stands there as base64 in a wrapper.

import { rowOf } from './methods.ts';

const WRAPPED = /^=\?base64\?(.*)\?=$/;
const PLAIN = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/;

/** The member of a call's params that `Mcp-Name` repeats, if one alone names what is called. */
export function nameKeyOf(method: string): string | undefined {
  const { verb, target } = rowOf(method) ?? {};
  return verb === undefined ? undefined : target?.at[0];
}

/** An empty text is wrapped too: it would look like a header without a value. */
export const encodeHeader = (text: string): string =>
  PLAIN.test(text) && !WRAPPED.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** The text that a header stands for; undefined for one that no sender may write. */
export function decodeHeader(header: string | string[]): string | undefined {
  if (typeof header !== 'string' || /[^\t\x20-\x7e]/.test(header)) return undefined;
  const [, base64] = WRAPPED.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  return withoutPadding(bytes.toString('base64')) === withoutPadding(base64) ? bytes.toString() : undefined;
}

const withoutPadding = (base64: string): string => base64.replace(/=+$/, '');
