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

// A daemon names itself to whatever it opens, so that it can refuse to serve itself: never in a message, which a strict peer
// could stumble over, but beside it.

/** How it calls itself in `clientInfo`, and in `serverInfo` where it speaks for many servers. */
export const NAME = 'troupe';
/** The HTTP header with the name of the daemon, to servers behind an address. */
export const VIA = 'troupe-via';
/** The variable with the same in the environment of its processes, and of theirs. */
export const MARKER = 'TROUPE_DAEMON';
