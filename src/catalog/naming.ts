// How things of many servers are told apart behind one endpoint. A name depends on its own server and on nothing else,
// so that none ever changes, or changes its meaning, because another server came or went. Of a definition only the bytes
// of its name change.

import { hash } from 'node:crypto';
import { splice } from '../protocol/edit.ts';
import { members, type Span } from '../protocol/json.ts';

const MAX_LENGTH = 64;
const JOINT = '__';
const DIGEST_LENGTH = 12;
/** How much of a long name stands before its digest, and how much of that the server's name may take. */
const STEM_LENGTH = MAX_LENGTH - DIGEST_LENGTH - 1;
const SERVER_LENGTH = 24;

const LEGAL = /^[A-Za-z0-9_-]+$/;
const ILLEGAL = /[^A-Za-z0-9_-]/gu;
const DIGESTED = /(?:^|_)[0-9a-f]{12}$/;

/**
 * `server__name` where server and name can be read back from it; else as much of both as fits, and a digest of the original.
 * A plain name that ends like a digested one is digested too, so that a name is never of both sorts.
 */
export function exposedName(server: string, name: string): string {
  const isPlain = server.length + JOINT.length + name.length <= MAX_LENGTH && isReversible(server) && LEGAL.test(name);
  return isPlain && !isDigested(name) ? `${server}${JOINT}${name}` : digestedName(server, name);
}

/** Whether a tool's own name, or an exposed one, ends like a name with a digest. */
export const isDigested = (name: string): boolean => name.length >= DIGEST_LENGTH && DIGESTED.test(name);

/** Server and name in a plain exposed name; undefined for one that cannot be read back. */
export function originOf(exposed: string): { readonly server: string; readonly name: string } | undefined {
  const at = exposed.indexOf(JOINT);
  const server = exposed.slice(0, Math.max(at, 0));
  const name = exposed.slice(at + JOINT.length);
  return server !== '' && exposedName(server, name) === exposed ? { server, name } : undefined;
}

/** Servers named `a__b` or `a_` would make names that read as those of the server `a`. */
const isReversible = (server: string): boolean => `${server}${JOINT}`.indexOf(JOINT) === server.length;

function digestedName(server: string, name: string): string {
  const room = STEM_LENGTH - JOINT.length;
  const head = server.slice(0, Math.max(SERVER_LENGTH, room - name.length));
  const tail = name.slice(0, room - head.length);
  // The name as JSON, because UTF-8 has one and the same bytes for all unpaired surrogates.
  const digest = hash('sha256', `${server}\0${JSON.stringify(name)}`).slice(0, DIGEST_LENGTH);
  return `${`${head}${JOINT}${tail}`.replace(ILLEGAL, '_')}_${digest}`;
}

const SCHEME = /^troupe\+([a-z0-9.-]*):/i;

/** The prefix that says which server a URI is of. A scheme cannot have `_`, and a server's name cannot have `.`. */
export const qualifierOf = (server: string): string => `troupe+${server.replaceAll('_', '.')}:`;

/** A server's own URI that looks qualified is qualified once more, so that no server speaks for another. */
export const isQualified = (uri: string): boolean => SCHEME.test(uri);

export function originOfUri(uri: string): { readonly server: string; readonly name: string } | undefined {
  const [prefix, host] = SCHEME.exec(uri) ?? [];
  if (prefix === undefined || host === undefined) return undefined;
  return { server: host.toLowerCase().replaceAll('.', '_'), name: uri.slice(prefix.length) };
}

/** A server's definition under another name; undefined if it is not clear which of its members a host would take for it. */
export function renamed(definition: Buffer, key: string, name: string): Buffer | undefined {
  const span = spanOfName(definition, key);
  return span && splice(definition, span, JSON.stringify(name));
}

/** A server's definition with a prefix before its name, which keeps its own bytes; undefined as for `renamed`. */
export function prefixed(definition: Buffer, key: string, prefix: string): Buffer | undefined {
  const span = spanOfName(definition, key);
  return span && splice(definition, { from: span.from + 1, to: span.from + 1 }, prefix);
}

/** Readers differ in which of two members they take, and Go's takes `Name` for `name` as well. */
function spanOfName(definition: Buffer, key: string): Span | undefined {
  const folded = key.toLowerCase();
  let span: Span | undefined;
  for (const [each, value] of members(definition)) {
    if (each.length !== key.length || each.toLowerCase() !== folded) continue;
    if (span || each !== key) return undefined;
    const from = value.byteOffset - definition.byteOffset;
    span = { from, to: from + value.length };
  }
  return span;
}
