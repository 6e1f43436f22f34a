// The version of this program, as its package says, and where the files are that it starts or loads by name.

import { existsSync, readFileSync } from 'node:fs';

/** The package is two folders above this one in the sources, and three in what was built from them. */
const PACKAGE = ['../../', '../../../']
  .map((path) => new URL(path, import.meta.url))
  .find((folder) => existsSync(new URL('package.json', folder)));
if (!PACKAGE) throw new Error('troupe: there is no package.json above dist; install the package whole');

export const VERSION: string = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')).version;

/** A file of the bundle, whoever asks: no thread can be made of the sources on Node 20. */
export const bundled = (file: string): URL => new URL(`dist/bundle/${file}.cjs`, PACKAGE);

// A daemon names itself to whatever it opens, so that it can refuse to serve itself: never in a message, which a strict peer
// could stumble over, but beside it.

/** How it calls itself in `clientInfo`, and in `serverInfo` where it speaks for many servers. */
export const NAME = 'troupe';
/** The HTTP header with the name of the daemon, to servers behind an address. */
export const VIA = 'troupe-via';
/** The variable with the same in the environment of its processes, and of theirs. */
export const MARKER = 'TROUPE_DAEMON';
