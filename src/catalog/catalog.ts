// What every server offers, also while it is asleep or down: the last list that was read stays, and that of a server (not
// of an instance) is in the store for the next start. Definitions are the server's own bytes, in the server's own order.

import { createHash } from 'node:crypto';
import { isInstance } from '../config/names.ts';
import type { Failure } from '../protocol/failures.ts';
import { elements } from '../protocol/json.ts';
import type { Store } from '../store/store.ts';
import { type Entry, entryOf } from './fetch.ts';
import { ALL_KINDS, isKind, type Kind } from './kinds.ts';

export type Listing = {
  readonly entries: readonly Entry[];
  readonly names: ReadonlySet<string>;
  readonly hash: string;
  /** Read since the server last opened, not taken from the store or from before a restart. */
  readonly isFresh: boolean;
  /** What the server's result has beside the list, such as `_meta`; not kept for the next start. */
  readonly others: Buffer;
  /** Why it could not be read when it last was to be, and what whoever asks for it is told. */
  readonly trouble: Trouble | undefined;
};
export type Trouble = { readonly why: string; readonly failure: Failure };
export type Catalog = ReturnType<typeof createCatalog>;

type Row = { server: string; kind: string; body: Buffer; hash: string };

/** A longer list is not stored, and is read from the server after each start. */
const MAX_STORED_BYTES = 16 * 1024 * 1024;
const NO_OTHERS = Buffer.alloc(0);
const NOTHING: Listing = {
  entries: [],
  names: new Set(),
  hash: '',
  isFresh: false,
  others: NO_OTHERS,
  trouble: undefined,
};

export function createCatalog(store: Store) {
  const listings = new Map<string, Record<Kind, Listing>>();
  const watchers = new Set<(server: string, kind: Kind) => void>();
  let version = 0;

  for (const { server, kind, body, hash } of store.all<Row>('catalogs')) {
    if (isKind(kind)) put(server, kind, listing(entriesIn(body, kind), hash));
  }

  function put(server: string, kind: Kind, found: Listing): void {
    version++;
    const lists = listings.get(server) ?? { tools: NOTHING, prompts: NOTHING, resources: NOTHING, templates: NOTHING };
    lists[kind] = found;
    listings.set(server, lists);
    for (const watcher of watchers) watcher(server, kind);
  }

  const get = (server: string, kind: Kind): Listing => listings.get(server)?.[kind] ?? NOTHING;

  return {
    /** Another number whenever any list may have changed. The `entries` of a list are the same array until that list has. */
    get version(): number {
      return version;
    },
    /** True when this list differs from the one known before. */
    set(server: string, kind: Kind, entries: readonly Entry[], others: Buffer = NO_OTHERS): boolean {
      const body = arrayOf(entries);
      const hash = createHash('sha256').update(body).digest('base64url');
      const before = get(server, kind);
      const isSame = before.hash === hash;
      const now = isSame ? before : listing(entries, hash);
      put(server, kind, { ...now, isFresh: true, others, trouble: undefined });
      if (isSame) return false;
      // Instances come and go with principals and sessions; the lists of one are read whenever it opens.
      if (!isInstance(server) && body.length <= MAX_STORED_BYTES)
        store.write('putCatalog', [server, kind, body, hash, Date.now()]);
      return true;
    },
    /** It could not be read: what was known of it stands, but may be out of date. */
    fail(server: string, kind: Kind, trouble: Trouble): void {
      put(server, kind, { ...get(server, kind), isFresh: false, trouble });
    },
    get,
    /** The server was down, or its settings changed: its lists stand, but are not fresh until they are read again. */
    expire(server: string): void {
      for (const kind of ALL_KINDS) {
        const known = get(server, kind);
        if (known.isFresh || known.trouble) put(server, kind, { ...known, isFresh: false, trouble: undefined });
      }
    },
    /** Tells of every list that was read, changed or not, or is no longer fresh. Returns how to hear no more of it. */
    watch(watcher: (server: string, kind: Kind) => void): () => void {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    forget(server: string): void {
      version++;
      listings.delete(server);
      if (!isInstance(server)) store.write('deleteCatalog', [server]);
    },
  };
}

/** As the store has it, or as it was read: then it is fresh. */
function listing(entries: readonly Entry[], hash: string): Listing {
  const names = new Set(entries.map(({ name }) => name));
  return { entries, names, hash, isFresh: false, others: NO_OTHERS, trouble: undefined };
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

const entriesIn = (body: Buffer, kind: Kind): Entry[] =>
  [...elements(body)].flatMap((bytes) => entryOf(bytes, kind) ?? []);
