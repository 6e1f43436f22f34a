// A list cut into pages that fit into a message. The cursor is opaque and good for one list only: when the list has
// changed in between, the reader is told to begin again rather than given a hole or a double.

import { TroupeError } from '../protocol/failures.ts';
import { arrayOf, type Listing } from './catalog.ts';
import { KINDS, type Kind } from './kinds.ts';

export type Paged = {
  readonly length: number;
  readonly hash: string;
  /** One definition; undefined for one that is not given out after all. */
  readonly at: (index: number) => Buffer | undefined;
};

/** What a page has beside its definitions, at most. */
const WRAPPING = 96;
/** Looking for the next one that is given out takes time too: so many of the others end a page as well. */
const MISSING = 256;

/** The MCP result of one page, at most `maxBytes` long unless a single definition is longer. */
export function pageOf(listing: Listing, kind: Kind, cursor: string | undefined, maxBytes: number): Buffer {
  const { entries, hash } = listing;
  return pageFrom({ hash, length: entries.length, at: (index) => entries[index]?.bytes }, kind, cursor, maxBytes);
}

export function pageFrom(list: Paged, kind: Kind, cursor: string | undefined, maxBytes: number): Buffer {
  const definitions: { bytes: Buffer }[] = [];
  let room = maxBytes - WRAPPING;
  let end = cursor === undefined ? 0 : readCursor(cursor, list);
  for (; end < list.length; end++) {
    const bytes = list.at(end);
    room -= bytes ? bytes.length + 1 : MISSING;
    if (room < 0 && (definitions.length > 0 || !bytes)) break;
    if (bytes) definitions.push({ bytes });
  }
  const next = end < list.length ? `,"nextCursor":"${writeCursor(end, list)}"` : '';
  return Buffer.concat([Buffer.from(`{"${KINDS[kind].member}":`), arrayOf(definitions), Buffer.from(`${next}}`)]);
}

const writeCursor = (offset: number, { hash }: Paged) =>
  Buffer.from(`${offset}:${hash.slice(0, 12)}`).toString('base64url');

/** A cursor is exactly what was written: decoding alone would take many texts for the same. */
function readCursor(cursor: string, list: Paged): number {
  const offset = Number.parseInt(Buffer.from(cursor.slice(0, 64), 'base64url').toString('latin1'), 10);
  if (!(offset > 0 && offset < list.length) || cursor !== writeCursor(offset, list))
    throw new TroupeError('invalid', 'the cursor is not of this list; ask again without one');
  return offset;
}
