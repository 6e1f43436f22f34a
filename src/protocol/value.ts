// Whether bytes that come from a caller may be spliced into a frame as they are: one JSON object, valid, not too deep.

import { isUtf8 } from 'node:buffer';
import { OPEN_BRACE, spaceEnd, valueEnd } from './scan.ts';

/** What a frame puts around it counts too, so this is a little less than a frame may have. */
const MAX_DEPTH = 120;

export function isJsonObject(bytes: Buffer): boolean {
  const start = spaceEnd(bytes, 0);
  if (bytes[start] !== OPEN_BRACE || !isUtf8(bytes)) return false;
  const end = valueEnd(bytes, start, MAX_DEPTH);
  return end > 0 && spaceEnd(bytes, end) === bytes.length;
}
