// How things of many servers are told apart behind one endpoint. A name depends on its own server and on nothing else,
// so that none ever changes, or changes its meaning, because another server came or went.

import { hash } from 'node:crypto';

const MAX_LENGTH = 64;
const JOINT = '__';
const DIGEST_LENGTH = 12;
/** What is left of a name beside its digest, and of that for the server. */
const STEM_LENGTH = MAX_LENGTH - DIGEST_LENGTH - 1;
const SERVER_LENGTH = 24;

const LEGAL = /^[A-Za-z0-9_-]+$/;
const ILLEGAL = /[^A-Za-z0-9_-]/gu;
const DIGESTED = /(?:^|_)[0-9a-f]{12}$/;

/**
 * `server__name` where that can be read back in one way only; else as much of it as fits, and a digest of the original.
 * A plain name that ends like a digested one is digested too: so the two sorts never meet.
 */
export function exposedName(server: string, name: string): string {
  const isPlain = server.length + JOINT.length + name.length <= MAX_LENGTH && isReversible(server) && LEGAL.test(name);
  return isPlain && !isDigested(name) ? `${server}${JOINT}${name}` : digestedName(server, name);
}

/** Of a name alone or of the whole. */
export const isDigested = (name: string): boolean => name.length >= DIGEST_LENGTH && DIGESTED.test(name);

/** Server and name in a plain exposed name; undefined for one that cannot be read back. */
export function originOf(exposed: string): { readonly server: string; readonly name: string } | undefined {
  const at = exposed.indexOf(JOINT);
  const server = exposed.slice(0, Math.max(at, 0));
  const name = exposed.slice(at + JOINT.length);
  return server !== '' && exposedName(server, name) === exposed ? { server, name } : undefined;
}

/** `a__b` and `a_` would make the same names as `a` does, for other tools. */
const isReversible = (server: string): boolean => `${server}${JOINT}`.indexOf(JOINT) === server.length;

function digestedName(server: string, name: string): string {
  const room = STEM_LENGTH - JOINT.length;
  const head = server.slice(0, Math.max(SERVER_LENGTH, room - name.length));
  const tail = name.slice(0, room - head.length);
  // As JSON, because UTF-8 would make one and the same of all unpaired surrogates.
  const digest = hash('sha256', `${server}\0${JSON.stringify(name)}`).slice(0, DIGEST_LENGTH);
  return `${`${head}${JOINT}${tail}`.replace(ILLEGAL, '_')}_${digest}`;
}

const SCHEME = /^troupe\+([a-z0-9.-]*):/i;

/** The prefix that says whose URI it is. A scheme knows no `_`, a server's name no `.`. */
export const qualifierOf = (server: string): string => `troupe+${server.replaceAll('_', '.')}:`;

/** Also a server may give out URIs that look qualified; they are qualified once more, so that none speaks for another. */
export const isQualified = (uri: string): boolean => SCHEME.test(uri);

export function originOfUri(uri: string): { readonly server: string; readonly name: string } | undefined {
  const [prefix, host] = SCHEME.exec(uri) ?? [];
  if (prefix === undefined || host === undefined) return undefined;
  return { server: host.toLowerCase().replaceAll('.', '_'), name: uri.slice(prefix.length) };
}

export type Rules = { readonly allow?: string[] | undefined; readonly deny?: string[] | undefined };

/** Whether a name is among those that are allowed and none of those that are denied. */
export function permission({ allow, deny }: Rules): (name: string) => boolean {
  const denied = deny?.map(glob) ?? [];
  const allowed = allow?.map(glob);
  return (name) => !denied.some((matches) => matches(name)) && (!allowed || allowed.some((matches) => matches(name)));
}

/** Names with `*` for any run of characters. Compared piece by piece: a pattern must not become a slow regex. */
export function glob(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (name) => name === pattern;
  return (name) => {
    if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0 || found + piece.length > name.length - last.length) return false;
      at = found + piece.length;
    }
    return true;
  };
}
