// A reserve on the disk: a file of random bytes, deleted when the disk is full so that rows can still be recorded, and made
// again only when there is clearly room, so that it never takes the last space itself.

import { randomBytes } from 'node:crypto';
import { closeSync, constants, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openOwn } from '../files/own.ts';

export type Ballast = {
  /** Gives the space back; false when the reserve was missing. */
  release(): boolean;
  /** Makes the reserve if it is missing and there is room for two of it; whether it is there. */
  restore(): boolean;
};

export function ballastIn(directory: string, bytes: number): Ballast {
  const file = join(directory, 'ballast');
  return {
    release() {
      return sizeOf(file) > 0 && drop(file);
    },
    restore() {
      if (sizeOf(file) === bytes) return true;
      return hasRoom(file, bytes) && fill(file, bytes);
    },
  };
}

function hasRoom(file: string, bytes: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize >= 2 * bytes;
  } catch {
    return false; // the directory is gone
  }
}

function fill(file: string, bytes: number): boolean {
  const noise = randomBytes(Math.min(bytes, 65_536)); // zeros would take no space on a disk that compresses
  try {
    const descriptor = openOwn(file, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
    try {
      for (let left = bytes; left > 0; ) left -= writeSync(descriptor, noise, 0, Math.min(left, noise.length));
    } finally {
      closeSync(descriptor);
    }
    return true;
  } catch {
    drop(file); // no room after all: half a reserve would only be in the way
    return false;
  }
}

/** Whether it is gone. A disk that has become read-only keeps it, and that is a state of the disk, no bug of ours. */
function drop(file: string): boolean {
  try {
    rmSync(file, { force: true });
    return true;
  } catch {
    return false;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
