// Names as subject tokens, one-to-one: a permission on a subject is a permission on exactly the names it spells.
// A byte outside [A-Za-z0-9_-] becomes `=XX`; `=` is legal in subjects and in KV keys alike.

import { createHash } from 'node:crypto';

const PLAIN_TOKEN = /^[A-Za-z0-9_-]+$/;
const PLAIN_NAME = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const MAX_LENGTH = 200;

/** A tool's or prompt's name as subject tokens. Dots stay separators, so that families of names can be granted. */
export function encodeName(name: string): string {
  const encoded = PLAIN_NAME.test(name) ? name : name.split('.').map(encodeToken).join('.');
  // `=h` is no escape, so no name that is spelled out can collide with a hashed one.
  return encoded.length <= MAX_LENGTH ? encoded : `=h.${base32(sha256(name))}`;
}

/** The name a tail spells; undefined when it spells none, or only the hash of one. */
export function decodeName(tail: string): string | undefined {
  if (tail.length > MAX_LENGTH) return undefined;
  if (PLAIN_NAME.test(tail)) return tail;
  const name = tail.split('.').map(unescapeToken).join('.');
  // One name, one subject: a second spelling would slip past a permission that denies the first.
  return nameMatches(tail, name) ? name : undefined;
}

export const nameMatches = (tail: string, name: string): boolean => encodeName(name) === tail;

/** The name a request is for: spelled by its subject, or by the header `Mcp-Name`, which must then agree with it. */
export function requestedName(tail: string, header?: string): string | undefined {
  if (!header) return decodeName(tail);
  const base64 = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
  const name = base64 === undefined ? header : Buffer.from(base64, 'base64').toString();
  return nameMatches(tail, name) ? name : undefined;
}

/** Any string as exactly one token; the empty string is `=`. */
export function encodeToken(text: string): string {
  if (PLAIN_TOKEN.test(text)) return text;
  if (text === '') return '=';
  let token = '';
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    token += PLAIN_TOKEN.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return token;
}

export function decodeToken(token: string): string | undefined {
  if (PLAIN_TOKEN.test(token)) return token;
  const text = unescapeToken(token);
  return encodeToken(text) === token ? text : undefined;
}

/** Lenient: its callers encode the outcome again and compare. */
function unescapeToken(token: string): string {
  if (token === '=') return '';
  const bytes = token.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** A URI never stands in a subject: it may be long, and it may hold a secret. */
export const uriHash = (uri: string): string => base32(sha256(uri)).slice(0, 26);

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

function base32(bytes: Buffer): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(group.padEnd(5, '0'), 2)])
    .join('');
}
