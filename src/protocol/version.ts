// The version of this program, as its package says.

import { readFileSync } from 'node:fs';

/** The package is two folders above this one in the sources, and three in what was built from them. */
function readVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version;
    } catch {} // not there: try the other place
  }
  return '0.0.0';
}

export const VERSION = readVersion();

/** The `_meta` key under which a daemon names itself to the servers it opens, so that it can refuse to serve itself. */
export const VIA = 'troupe/via';
