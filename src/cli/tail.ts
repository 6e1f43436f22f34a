// Reads a growing file line by line, across its rotation: what was written to the old file before it was renamed
// is read to its end, then the new file from its beginning. A line is given only when it is whole.

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

export type Tail = {
  /** Gives every whole line that has come since the last call. */
  readonly read: (onLine: (line: string) => void) => void;
  /** Which file is open, to tell it from its rotated brother. */
  readonly inode: () => number | undefined;
};

const CHUNK = Buffer.alloc(64 * 1024);

export function openTail(path: string): Tail {
  let file = openFile(path);
  return {
    read(onLine) {
      file ??= openFile(path);
      while (file) {
        file.drain(onLine);
        if (isCurrent(path, file.fd, file.position())) return;
        // Renamed, or cut short. Once more, for what was written between the last look and the rename.
        file.drain(onLine);
        closeSync(file.fd);
        file = openFile(path);
      }
    },
    inode: () => (file ? fstatSync(file.fd).ino : undefined),
  };
}

/** The rotated file, unless the rotation happened just now and the tail has it open. */
export function readOld(path: string, tail: Tail, onLine: (line: string) => void): void {
  const old = openFile(path);
  if (!old) return;
  if (fstatSync(old.fd).ino !== tail.inode()) old.drain(onLine);
  closeSync(old.fd);
}

function isCurrent(path: string, fd: number, position: number): boolean {
  try {
    return statSync(path).ino === fstatSync(fd).ino && fstatSync(fd).size >= position;
  } catch {
    return true; // between the rename and the new file: keep the old one until the new is there
  }
}

function openFile(path: string) {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined; // not there yet
  }
  const decoder = new StringDecoder('utf8');
  let position = 0;
  let rest = '';
  const drain = (onLine: (line: string) => void): void => {
    for (let count = readSync(fd, CHUNK, 0, CHUNK.length, position); count > 0; ) {
      position += count;
      const lines = (rest + decoder.write(CHUNK.subarray(0, count))).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') onLine(line);
      count = readSync(fd, CHUNK, 0, CHUNK.length, position);
    }
  };
  return { fd, drain, position: () => position };
}
