// A list cut into pages that fit into a message. The cursor is opaque and good for one list only: when the list has
// changed in between, the reader is told to begin again rather than given a hole or a double.

import { TroupeError } from '../failures.ts';
import { arrayOf, type Listing } from './catalog.ts';
import { KINDS, type Kind } from './kinds.ts';

/** The MCP result of one page, at most `maxBytes` long unless a single definition is longer. */
export function pageOf(listing: Listing, kind: Kind, cursor: string | undefined, maxBytes: number): Buffer {
  const start = cursor === undefined ? 0 : readCursor(cursor, listing);
  let end = start;
  let bytes = 0;
  while (end < listing.entries.length) {
    bytes += (listing.entries[end]?.bytes.length ?? 0) + 1;
    if (bytes > maxBytes && end > start) break;
    end++;
  }
  const next = end < listing.entries.length ? `,"nextCursor":"${writeCursor(end, listing)}"` : '';
  return Buffer.concat([
    Buffer.from(`{"${KINDS[kind].member}":`),
    arrayOf(listing.entries.slice(start, end)),
    Buffer.from(`${next}}`),
  ]);
}

const writeCursor = (offset: number, { hash }: Listing) =>
  Buffer.from(`${offset}:${hash.slice(0, 12)}`).toString('base64url');

function readCursor(cursor: string, { hash, entries }: Listing): number {
  const [offset, of] = Buffer.from(cursor, 'base64url').toString().split(':');
  const start = Number(offset);
  if (of !== hash.slice(0, 12) || !Number.isInteger(start) || start < 0 || start > entries.length)
    throw new TroupeError('invalid', 'the cursor is not of this list; ask again without one');
  return start;
}
