// What every server offers, also while it is asleep or down: the last list that was read is kept, and a server's own is
// in the store for the next start. Definitions are the server's own bytes, in the server's own order.

import { createHash } from 'node:crypto';
import { isInstance } from '../config/names.ts';
import { elements, member, stringOf } from '../protocol/json.ts';
import type { Store } from '../store/store.ts';
import type { Entry } from './fetch.ts';
import { ALL_KINDS, isKind, KINDS, type Kind } from './kinds.ts';

export type Listing = {
  readonly entries: readonly Entry[];
  readonly names: ReadonlySet<string>;
  readonly hash: string;
  /** Read in this life of the server, not only remembered from an earlier one. */
  readonly isFresh: boolean;
};
export type Catalog = ReturnType<typeof createCatalog>;

type Row = { server: string; kind: string; body: Buffer; hash: string };

/** A longer list is read anew after each start rather than kept. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
const NOTHING: Listing = { entries: [], names: new Set(), hash: '', isFresh: false };

export function createCatalog(store: Store) {
  const listings = new Map<string, Partial<Record<Kind, Listing>>>();
  const watchers = new Set<(server: string, kind: Kind) => void>();
  let version = 0;

  for (const { server, kind, body, hash } of store.all<Row>('catalogs')) {
    if (isKind(kind)) keep(server, kind, { ...listing(remembered(body, kind), hash), isFresh: false });
  }

  function keep(server: string, kind: Kind, found: Listing): void {
    version++;
    listings.set(server, { ...listings.get(server), [kind]: found });
  }

  return {
    /** Another number whenever any list may have changed. The `entries` of a list are the same array until it has. */
    get version(): number {
      return version;
    },
    /** True when this list differs from the one known before. */
    set(server: string, kind: Kind, entries: readonly Entry[]): boolean {
      const body = arrayOf(entries);
      const hash = createHash('sha256').update(body).digest('base64url');
      const before = listings.get(server)?.[kind];
      const isSame = before?.hash === hash;
      keep(server, kind, { ...(isSame ? before : listing(entries, hash)), isFresh: true });
      for (const watcher of watchers) watcher(server, kind);
      if (isSame) return false;
      // Instances come and go with principals and sessions; whoever opens one reads its lists.
      if (!isInstance(server) && body.length <= MAX_KEPT_BYTES)
        store.write('putCatalog', [server, kind, body, hash, Date.now()]);
      return true;
    },
    /** Tells of every list that was read, whether it has changed or not, until the listener leaves. */
    watch(listener: (server: string, kind: Kind) => void): () => void {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    get: (server: string, kind: Kind): Listing => listings.get(server)?.[kind] ?? NOTHING,
    /** The lists of a server that came back may have changed while it was away. */
    expire(server: string): void {
      for (const kind of ALL_KINDS) {
        const known = listings.get(server)?.[kind];
        if (known?.isFresh) keep(server, kind, { ...known, isFresh: false });
      }
    },
    forget(server: string): void {
      version++;
      listings.delete(server);
      if (!isInstance(server)) store.write('deleteCatalog', [server]);
    },
  };
}

function listing(entries: readonly Entry[], hash: string): Omit<Listing, 'isFresh'> {
  return { entries, hash, names: new Set(entries.map(({ name }) => name)) };
}

/** One JSON array of the definitions, byte for byte. */
export function arrayOf(entries: readonly Pick<Entry, 'bytes'>[]): Buffer {
  const parts: Buffer[] = [Buffer.from('[')];
  entries.forEach(({ bytes }, index) => {
    if (index > 0) parts.push(COMMA);
    parts.push(bytes);
  });
  parts.push(Buffer.from(']'));
  return Buffer.concat(parts);
}

const COMMA = Buffer.from(',');

function remembered(body: Buffer, kind: Kind): Entry[] {
  const entries: Entry[] = [];
  for (const bytes of elements(body)) {
    const key = member(bytes, KINDS[kind].key);
    const name = key && stringOf(key);
    if (name !== undefined) entries.push({ name, bytes });
  }
  return entries;
}
