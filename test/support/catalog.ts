// A real catalog in a store of the test's own, filled as if servers had been read.

import { type Catalog, createCatalog } from '../../src/catalog/catalog.ts';
import { type Entry, fetchList } from '../../src/catalog/fetch.ts';
import { KINDS, type Kind } from '../../src/catalog/kinds.ts';
import { createView, type Naming, type View } from '../../src/catalog/view.ts';
import { openStore } from '../../src/store/store.ts';
import { scratch } from './scratch.ts';

/** An empty one. What it keeps is gone with the scope, but there for `reopened` until then. */
export async function catalog() {
  const dir = await scratch();
  const store = await openStore(dir.path);
  return Object.assign(createCatalog(store), {
    async reopened(): Promise<Catalog> {
      await store.flush();
      return createCatalog(store);
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await dir[Symbol.asyncDispose]();
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
