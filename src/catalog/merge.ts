// The lists of one kind of several servers: what of them is shown, in which order, and whose a name or a URI is.
// A hundred thousand tools cost nothing here until somebody asks for what needs a look at each of them.

import { hash } from 'node:crypto';
import { arrayOf, type Listing } from './catalog.ts';
import type { Entry } from './fetch.ts';
import type { Kind } from './kinds.ts';
import { exposedName, isDigested } from './naming.ts';

/** A server, and the key of its lists in the catalog: the server's name, or `server@principal`. */
export type Source = {
  readonly server: string;
  readonly key: string;
  /** Who runs calls of its tools as tasks; nobody for a host that knows no tasks. */
  readonly tasks?: 'its own' | 'ours';
};
export type Target = { readonly server: string /** The server's own name or URI. */; readonly name: string };
/** A server's list of one kind. */
export type Part = { readonly source: Source; readonly listing: Listing };
export type Shown = { readonly source: Source; readonly entry: Entry };

export type Merged = {
  readonly parts: readonly Part[];
  readonly byServer: ReadonlyMap<string, Part>;
  readonly length: () => number;
  readonly at: (index: number) => Shown | undefined;
  readonly hash: () => string;
  /** Whose name this is that cannot be read back. */
  readonly digested: () => ReadonlyMap<string, Target>;
};

/** The kind keeps lists apart when their bytes are the same; `select` says what is shown of a part. */
export function merge(kind: Kind, parts: readonly Part[], select: (part: Part) => readonly Entry[]): Merged {
  const lists = once(() => parts.map(select));
  return {
    parts,
    byServer: new Map(parts.map((part) => [part.source.server, part])),
    length: once(() => lists().reduce((sum, { length }) => sum + length, 0)),
    at: (index) => locate(parts, lists(), index),
    hash: once(() => hashOf(kind, parts, lists())),
    digested: once(() => new Map(parts.flatMap(digestedNames))),
  };
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function locate(parts: readonly Part[], lists: readonly (readonly Entry[])[], index: number): Shown | undefined {
  let rest = index;
  for (const [at, list] of lists.entries()) {
    const [entry, part] = [list[rest], parts[at]];
    if (entry && part) return { source: part.source, entry };
    rest -= list.length;
  }
  return undefined;
}

/** Of what is shown, not of what is there: a change to what nobody sees is none. */
function hashOf(kind: Kind, parts: readonly Part[], lists: readonly (readonly Entry[])[]): string {
  const lines = parts.map(({ source: { server, tasks }, listing }, index) => {
    const list = lists[index] ?? [];
    if (list.length === 0) return '';
    // The same as that of the bytes, and it is there already.
    const own = list.length === listing.entries.length ? listing.hash : contentHash(arrayOf(list));
    return `${server} ${own}${kind === 'tools' && tasks === 'ours' ? ' as tasks' : ''}\n`;
  });
  return contentHash(`${kind}\n${lines.join('')}`);
}

const contentHash = (content: string | Buffer): string => hash('sha256', content, 'base64url');

/** By the list they are of, which is the same array until it changes. */
const known = new WeakMap<readonly Entry[], [string, Target][]>();

function digestedNames({ source: { server }, listing }: Part): [string, Target][] {
  const names = known.get(listing.entries) ?? [];
  if (known.has(listing.entries)) return names;
  known.set(listing.entries, names);
  for (const name of listing.names) {
    const as = exposedName(server, name);
    if (isDigested(as)) names.push([as, { server, name }]);
  }
  return names;
}

/** The first of each name: two things under one name cannot be told apart. */
export function withoutDoubles({ entries, names }: Listing): readonly Entry[] {
  if (entries.length === names.size) return entries;
  const seen = new Set<string>();
  return entries.filter(({ name }) => !seen.has(name) && seen.add(name));
}

/** The servers that list this URI. */
export const claimants = (parts: readonly Part[], uri: string): readonly Part[] =>
  parts.filter(({ listing }) => listing.names.has(uri));
