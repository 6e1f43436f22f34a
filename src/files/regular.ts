// Files that somebody else names: a configuration, a host's own file, credentials. Only a regular file is read, and only up to
// a bound: a named pipe would be waited for without end, and a device has no last byte.

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { TroupeError } from '../protocol/failures.ts';

/** Far more than anybody writes by hand. */
export const MOST_BYTES = 4 * 2 ** 20;
const CHUNK_BYTES = 65_536;

/** The bytes of a file, or of what a link leads to; throws the system's own error where there is none. */
export function readRegular(path: string, most: number = MOST_BYTES): Buffer {
  refuseOthers(statSync(path), most); // before it is opened, which is an act of its own for some devices
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    refuseOthers(fstatSync(file), most); // what was opened may be another one by now
    return readBounded(file, most);
  } finally {
    closeSync(file);
  }
}

/** To its end, whatever its size was said to be: files of /proc say 0, and a file may grow meanwhile. */
export function readBounded(file: number, most: number): Buffer {
  const chunks: Buffer[] = [];
  for (let total = 0; ; ) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = readSync(file, chunk, 0, chunk.length, null);
    total += count;
    if (total > most) throw tooLarge(most);
    if (count === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, count));
  }
}

function refuseOthers(found: Stats, most: number): void {
  if (!found.isFile()) throw new TroupeError('invalid', `this is ${kindOf(found)}; name a file`);
  if (found.size > most) throw tooLarge(most);
}

const tooLarge = (most: number): TroupeError =>
  new TroupeError('invalid', `the file has more than ${most / 2 ** 20} MB; name a smaller one`);

export function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a directory';
  if (found.isFIFO()) return 'a named pipe';
  if (found.isSocket()) return 'a socket';
  return found.isSymbolicLink() ? 'a symbolic link' : found.isFile() ? 'a file' : 'a device';
}
