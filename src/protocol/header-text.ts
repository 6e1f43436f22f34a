// Text in an HTTP header, which takes visible ASCII only: as it is where it can stand there, else as base64 in a wrapper.

const WRAPPED = /^=\?base64\?(.*)\?=$/;
const PLAIN = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/;

/** An empty text is wrapped too: it would look like none. */
export const encoded = (text: string): string =>
  PLAIN.test(text) && !WRAPPED.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** What a header says, or undefined where it says nothing that a header may. */
export function decoded(header: string | string[]): string | undefined {
  if (typeof header !== 'string' || /[^\t\x20-\x7e]/.test(header)) return undefined;
  const [, base64] = WRAPPED.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  return withoutPadding(bytes.toString('base64')) === withoutPadding(base64) ? bytes.toString() : undefined;
}

const withoutPadding = (base64: string): string => base64.replace(/=+$/, '');
