// A real catalog in a store of the test file's own, filled as if servers had been read.
// Import it only where it is used: it opens that store before the first test and closes it after the last.

import { afterAll, beforeAll } from 'vitest';
import { type Catalog, createCatalog } from '../../src/catalog/catalog.ts';
import { type Entry, fetchList } from '../../src/catalog/fetch.ts';
import { KINDS, type Kind } from '../../src/catalog/kinds.ts';
import { createView, type Naming, type View } from '../../src/catalog/view.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { type Scratch, scratch } from './scratch.ts';

let dir: Scratch;
let store: Store;
beforeAll(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
});
afterAll(async () => {
  await store.close();
  await dir[Symbol.asyncDispose]();
});

/** An empty one. What it keeps is gone with the scope, but there for `reopened` until then. */
export async function catalog() {
  return Object.assign(createCatalog(store), {
    async reopened(): Promise<Catalog> {
      await store.flush();
      return createCatalog(store);
    },
    async [Symbol.asyncDispose]() {
      await store.flush();
      for (const { server } of store.all<{ server: string }>('catalogs')) store.write('deleteCatalog', [server]);
      await store.flush();
    },
  });
}

/** Definitions as the text a server would send them in, read the way the product reads them. */
export async function entriesOf(kind: Kind, definitions: readonly (object | string)[]): Promise<Entry[]> {
  const texts = definitions.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  const result = Buffer.from(`{"${KINDS[kind].member}":[${texts.join(',')}]}`);
  return (await fetchList(async () => result, kind)).entries;
}

/** A view of these servers; `servers` may be changed afterwards. */
export function viewOf(of: Catalog, servers: string[], naming: Partial<Naming> = {}): View {
  return createView(of, () => servers.map((server) => ({ server, key: server })), { isSingle: false, ...naming });
}

/** Every page of a list, one after the other. */
export function pagesOf(view: View, kind: Kind, maxBytes = 1_000_000): any[][] {
  const pages: any[][] = [];
  let cursor: string | undefined;
  do {
    const page = JSON.parse(view.page(kind, cursor, maxBytes).toString());
    pages.push(page[KINDS[kind].member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages;
}
