// The roots that are on the disk: the owner's, and those of every session that is in use, whichever daemon serves it.

import type { Store } from '../store/store.ts';
import type { Root } from './root.ts';

export type SessionRoots = {
  readonly id: string;
  readonly principal: string;
  /** The endpoint it came to. */
  readonly scope: string;
  readonly roots: readonly Root[];
};
export type Rows = { readonly owner: readonly Root[]; readonly sessions: readonly SessionRoots[] };

const FRESH_MS = 1_000;
/** A host that has gone without a word is gone, though its session may be kept for a day; a row in use is touched every minute. */
const PRESENT_MS = 5 * 60_000;
const NOBODY: Rows = { owner: [], sessions: [] };

export function createRows(store: Store, onTrouble: (error: unknown) => void) {
  let rows = NOBODY;
  let readAt = Number.NEGATIVE_INFINITY;

  function read(): Rows {
    const owner = store.all<{ uri: string; name: string | null }>('roots');
    const sessions = store.all<Omit<SessionRoots, 'roots'> & { roots: string }>('sessionRoots', [
      Date.now() - PRESENT_MS,
    ]);
    return {
      owner: owner.map(({ uri, name }) => ({ uri, ...(name && { name }) })),
      sessions: sessions.map((row) => ({ ...row, roots: JSON.parse(row.roots) })),
    };
  }

  return {
    /** Not older than a second, unless the disk refuses to say more. */
    get(): Rows {
      if (performance.now() - readAt <= FRESH_MS) return rows;
      readAt = performance.now();
      try {
        rows = read();
      } catch (error) {
        onTrouble(error);
      }
      return rows;
    },
    /** The next `get` looks again. */
    forget(): void {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}
