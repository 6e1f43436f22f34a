// A list cut into pages that fit into a message. A cursor is opaque and good for one state of one list: when the list has
// changed, the reader is told to begin again, and is not given a page with gaps or repetitions.

import { TroupeError } from '../protocol/failures.ts';
import { arrayOf, type Listing } from './catalog.ts';
import { KINDS, type Kind } from './kinds.ts';

export type Paged = {
  readonly length: number;
  readonly hash: string;
  /** One definition; undefined for one that is left out, because its name is ambiguous. */
  readonly at: (index: number) => Buffer | undefined;
  /** Members beside the list, for the first page. */
  readonly others?: Buffer | undefined;
};

/** The bytes that a page has around its definitions, at most. */
const WRAPPING = 96;
/** A definition that is left out counts as so many bytes: a page ends in bounded time also if all are left out. */
const MISSING = 256;
const NOTHING = Buffer.alloc(0);

/** The MCP result of one page, at most `maxBytes` long unless a single definition is longer. */
export function pageOf(listing: Listing, kind: Kind, cursor: string | undefined, maxBytes: number): Buffer {
  const { entries, hash, others } = listing;
  const at = (index: number) => entries[index]?.bytes;
  return pageFrom({ hash, length: entries.length, at, others }, kind, cursor, maxBytes);
}

export function pageFrom(list: Paged, kind: Kind, cursor: string | undefined, maxBytes: number): Buffer {
  const definitions: { bytes: Buffer }[] = [];
  const others = (cursor === undefined && list.others) || NOTHING;
  let room = maxBytes - WRAPPING - others.length;
  let end = cursor === undefined ? 0 : readCursor(cursor, list);
  for (; end < list.length; end++) {
    const bytes = list.at(end);
    room -= bytes ? bytes.length + 1 : MISSING;
    if (room < 0 && (definitions.length > 0 || !bytes)) break;
    if (bytes) definitions.push({ bytes });
  }
  const next = end < list.length ? `,"nextCursor":"${writeCursor(end, list)}"` : '';
  return Buffer.concat([
    Buffer.from(`{"${KINDS[kind].member}":`),
    arrayOf(definitions),
    others,
    Buffer.from(`${next}}`),
  ]);
}

const writeCursor = (offset: number, { hash }: Paged) =>
  Buffer.from(`${offset}:${hash.slice(0, 12)}`).toString('base64url');

/** Only the very text of a cursor that was given out is one: base64 decodes many texts to the same bytes. */
function readCursor(cursor: string, list: Paged): number {
  const offset = Number.parseInt(Buffer.from(cursor.slice(0, 64), 'base64url').toString('latin1'), 10);
  if (!(offset > 0 && offset < list.length) || cursor !== writeCursor(offset, list))
    throw new TroupeError('invalid', 'the cursor is not of this list; ask again without one');
  return offset;
}
