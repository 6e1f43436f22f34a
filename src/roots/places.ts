// Where a root is on this machine. A place counts by its real path, every link resolved, so that neither a link nor a
// spelling leads out of what is allowed.

import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MAX_URI_BYTES } from './root.ts';

export type Problem = { readonly problem: string };
export type Place = { readonly path: string; readonly isDirectory: boolean };

// The reader of URLs would drop control characters, and take a backslash for a slash.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about
const UNFIT = /[\u0000-\u001f\u007f\\]/;

/** The path that a `file://` URI names, or why it names none here. `..` is resolved before any link is. */
export function pathOf(uri: string): { readonly path: string } | Problem {
  if (Buffer.byteLength(uri) > MAX_URI_BYTES) return { problem: `is longer than ${MAX_URI_BYTES} bytes; shorten it` };
  if (!/^file:\/\//i.test(uri)) return { problem: 'is no file:// URI; only those can be roots' };
  if (UNFIT.test(uri)) return { problem: 'has characters that no URI has; percent-encode them' };
  try {
    const url = new URL(uri);
    if (url.hostname !== '') return { problem: `is at ${url.hostname}; only files of this machine can be roots` };
    if (/[?#]/.test(uri)) return { problem: 'has a query or a fragment; write ? as %3F and # as %23' };
    const path = fileURLToPath(url);
    return path.includes('\0') ? { problem: NOWHERE } : { path };
  } catch {
    return { problem: 'is no URI of a file; check its percent-encoding' }; // such as %2F in a name, or no UTF-8
  }
}

/** What is really there. */
export function realPlace(path: string): Place | Problem {
  try {
    const real = realpathSync.native(path);
    return { path: real, isDirectory: statSync(real).isDirectory() };
  } catch (error) {
    return { problem: WHY[(error as NodeJS.ErrnoException).code ?? ''] ?? NOWHERE };
  }
}

const NOWHERE = 'does not exist; create it, or correct the path';
const WHY: Record<string, string> = {
  EACCES: 'cannot be reached by this user; give the user of the daemon access to it',
  EPERM: 'cannot be reached by this user; give the user of the daemon access to it',
  ELOOP: 'is a link that leads to itself; correct the link',
};

/** The real path that something has, or would have if it were there. */
export function realName(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path); // what is not there is no link, but what it would be in may be one
    return parent === path ? path : join(realName(parent), basename(path));
  }
}

/** Both are real paths. */
export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);

const FRESH_MS = 1_000;
const MAX_KEPT = 10_000;

/** Looks at the disk at most once a second for one path: servers may ask as often as they like. */
export function createPlaces(): (path: string) => Place | Problem {
  let seen = new Map<string, Place | Problem>();
  let seenAt = 0;
  return (path) => {
    if (performance.now() - seenAt > FRESH_MS || seen.size > MAX_KEPT) {
      seen = new Map();
      seenAt = performance.now();
    }
    const found = seen.get(path) ?? realPlace(path);
    seen.set(path, found);
    return found;
  };
}
