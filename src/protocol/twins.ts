// Whether JSON bytes mean the same to everybody: of a name that is given twice readers disagree on which value counts.
// Made for bytes that were accepted as JSON; of anything else its answer says nothing.

import { textOf } from './json.ts';
import { CLOSE_BRACE, CLOSE_BRACKET, colonEnd, OPEN_BRACE, OPEN_BRACKET, QUOTE, stringEnd } from './scan.ts';

/** Nobody reads more, and to compare them takes memory. */
const MAX_NAMES = 100_000;

/** True when no object at any depth has a name twice, however it is escaped, and there are not too many to tell. One pass. */
export function namesEachOnce(json: Buffer): boolean {
  const open: (Set<string> | undefined)[] = [];
  let count = 0;
  let at = 0;
  while (at < json.length) {
    const byte = json[at];
    if (byte !== QUOTE) {
      if (byte === OPEN_BRACE) open.push(new Set());
      else if (byte === OPEN_BRACKET) open.push(undefined);
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) open.pop();
      at++;
      continue;
    }
    const end = stringEnd(json, at);
    if (end < 0) return false;
    // A string before a colon is a name; nothing else is.
    if (colonEnd(json, end) > 0 && (++count > MAX_NAMES || !isNew(open.at(-1), textOf(json, at, end)))) return false;
    at = end;
  }
  return true;
}

const isNew = (names: Set<string> | undefined, name: string): boolean =>
  names !== undefined && names.size < names.add(name).size;
