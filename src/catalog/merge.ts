// The lists of one kind of several servers as one list: what of them is shown, in which order, and which server has a name.
// Nothing is made before it is asked for: a hundred thousand tools that no host reads cost nothing.

import { hash } from 'node:crypto';
import { arrayOf, type Catalog, type Listing } from './catalog.ts';
import type { Entry } from './fetch.ts';
import type { Kind } from './kinds.ts';
import { exposedName, isDigested } from './naming.ts';

/** A server, and the key of its lists in the catalog: the server's name, or `server@principal`. */
export type Source = {
  readonly server: string;
  readonly key: string;
  /** Who runs calls of its tools as tasks; absent for a host whose version has no tasks. */
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
  /** The targets of exposed names that have a digest, from which server and name cannot be read back. */
  readonly digested: () => ReadonlyMap<string, Target>;
};

/** Says which entries of a server's list are shown. */
type Select = (kind: Kind, part: Part) => readonly Entry[];

/** The merged list of each kind, the same one until a list, or the set of servers, has changed. */
export function mergedLists(catalog: Catalog, sources: () => readonly Source[], select: Select) {
  const latest = new Map<Kind, { sources: readonly Source[]; version: number; merged: Merged }>();

  return (kind: Kind): Merged => {
    const [now, version, before] = [sources(), catalog.version, latest.get(kind)];
    if (before && before.version === version && areSame(before.sources, now)) return before.merged;
    const parts = now.map((source) => ({ source, listing: catalog.get(source.key, kind) }));
    const isUnchanged = before !== undefined && areUnchanged(before.merged.parts, parts);
    const merged = isUnchanged ? before.merged : merge(kind, parts, select);
    latest.set(kind, { sources: now, version, merged });
    return merged;
  };
}

const areSame = (before: readonly Source[], now: readonly Source[]): boolean =>
  before === now ||
  (before.length === now.length &&
    before.every((source, index) => isSame(source, now[index]) && source.key === now[index]?.key));

const isSame = ({ server, tasks }: Source, other: Source | undefined): boolean =>
  server === other?.server && tasks === other.tasks;

/** A list may have moved to another key of the catalog: what counts is that the entries are the same. */
const areUnchanged = (before: readonly Part[], now: readonly Part[]): boolean =>
  before.length === now.length &&
  before.every(
    ({ source, listing }, index) =>
      isSame(source, now[index]?.source) && listing.entries === now[index]?.listing.entries,
  );

function merge(kind: Kind, parts: readonly Part[], select: Select): Merged {
  const lists = once(() => parts.map((part) => select(kind, part)));
  return {
    parts,
    byServer: new Map(parts.map((part) => [part.source.server, part])),
    length: once(() => lists().reduce((sum, { length }) => sum + length, 0)),
    at: (index) => shownAt(parts, lists(), index),
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

function shownAt(parts: readonly Part[], lists: readonly (readonly Entry[])[], index: number): Shown | undefined {
  let rest = index;
  for (const [at, list] of lists.entries()) {
    const [entry, part] = [list[rest], parts[at]];
    if (entry && part) return { source: part.source, entry };
    rest -= list.length;
  }
  return undefined;
}

/**
 * Only entries that are shown count: a change to a hidden one must not announce a changed list to the host. The kind counts,
 * because lists of two kinds may have the same bytes.
 */
function hashOf(kind: Kind, parts: readonly Part[], lists: readonly (readonly Entry[])[]): string {
  const lines = parts.map(({ source: { server, tasks }, listing }, index) => {
    const list = lists[index] ?? [];
    if (list.length === 0) return '';
    // A list that is shown whole has its hash already.
    const own = list.length === listing.entries.length ? listing.hash : contentHash(arrayOf(list));
    return `${server} ${own}${kind === 'tools' && tasks === 'ours' ? ' as tasks' : ''}\n`;
  });
  return contentHash(`${kind}\n${lines.join('')}`);
}

export const contentHash = (content: string | Buffer): string => hash('sha256', content, 'base64url');

/** Found once for each list: its entries are the same array until the list changes. */
const digestedByList = new WeakMap<readonly Entry[], [string, Target][]>();

function digestedNames({ source: { server }, listing }: Part): [string, Target][] {
  const found = digestedByList.get(listing.entries);
  if (found) return found;
  const names: [string, Target][] = [];
  for (const name of listing.names) {
    const exposed = exposedName(server, name);
    if (isDigested(exposed)) names.push([exposed, { server, name }]);
  }
  digestedByList.set(listing.entries, names);
  return names;
}

/** The first entry of each name: a host could not tell two things of one name apart. */
export function withoutDoubles({ entries, names }: Listing): readonly Entry[] {
  if (entries.length === names.size) return entries;
  const seen = new Set<string>();
  return entries.filter(({ name }) => !seen.has(name) && seen.add(name));
}

/** The servers that list this URI. */
export const claimants = (parts: readonly Part[], uri: string): readonly Part[] =>
  parts.filter(({ listing }) => listing.names.has(uri));
