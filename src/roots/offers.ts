// What a host answers to roots/list, read with distrust: only members that have the shape of a root are kept, and only so many.
// Whether such a directory exists is looked at whenever the list is wanted.

import { elements, member, stringOf } from '../protocol/json.ts';
import { withoutControls } from '../telemetry/printable.ts';
import { MAX_NAME_CHARACTERS, MAX_URI_BYTES, type Root } from './root.ts';

export const MAX_ROOTS = 100;
/** Of all roots of a session together, since they are kept on the disk. */
export const MAX_BYTES = 65_536;
const OPEN_BRACKET = 0x5b;

/** `isCut` when the host offered more roots than are kept. */
export type Offers = { readonly roots: readonly Root[]; readonly isCut: boolean };

/** Undefined for a result that has no list of roots. */
export function readOffers(result: Buffer): Offers | undefined {
  const list = member(result, 'roots');
  return list && readRoots(list);
}

/** Undefined for what is no list: also of a row of the database, which somebody may have changed. */
export function readRoots(list: Buffer): Offers | undefined {
  if (list[0] !== OPEN_BRACKET) return undefined;
  const roots: Root[] = [];
  let bytes = 0;
  for (const each of elements(list)) {
    const offer = readOffer(each);
    if (!offer) continue;
    bytes += Buffer.byteLength(offer.uri) + Buffer.byteLength(offer.name ?? '');
    if (roots.length >= MAX_ROOTS || bytes > MAX_BYTES) return { roots, isCut: true };
    roots.push(offer);
  }
  return { roots, isCut: false };
}

function readOffer(each: Buffer): Root | undefined {
  const text = (key: string): string | undefined => stringOf(member(each, key) ?? NOTHING);
  const [uri, name] = [text('uri'), text('name')];
  if (!uri) return undefined;
  // Of a URI that is too long enough is kept to say so.
  return { uri: uri.slice(0, MAX_URI_BYTES + 1), ...(name && { name: fitName(name) }) };
}

const NOTHING = Buffer.alloc(0);

export const fitName = (name: string): string =>
  withoutControls(name).replace(/\s+/g, ' ').slice(0, MAX_NAME_CHARACTERS).toWellFormed();
