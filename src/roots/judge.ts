// Which roots are given to servers, and under which name; what is wrong with the others is said once in the log, and shown
// by `troupe roots`. A directory counts by its real path, every link resolved, so that neither a link nor a spelling leads out
// of what is allowed.

import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { allowance } from '../telemetry/allowance.ts';
import { withoutControls } from '../telemetry/printable.ts';
import { realWorld, type World } from '../world/world.ts';
import { MAX_URI_BYTES, type Root, type RootSource, type RootView } from './root.ts';

export type JudgeOptions = {
  readonly allowed: () => readonly string[];
  readonly logger: Logger;
  readonly world?: Pick<World, 'now'>;
};

const WORDS_PER_SECOND = 5;
const MAX_SAID = 1_000;

export function createJudge(options: JudgeOptions): (from: RootSource, root: Root) => RootView {
  const { allowed, logger, world = realWorld } = options;
  const look = createLook(world);
  const said = new Set<string>();
  const pace = allowance(WORDS_PER_SECOND);

  function realUri(from: RootSource, uri: string): { readonly uri: string } | { readonly problem: string } {
    const named = pathOf(uri);
    if ('problem' in named) return named;
    if (from === 'host' && !mayBeLookedAt(named.path)) return { problem: OUTSIDE };
    const found = look(named.path);
    if ('problem' in found) return found;
    if (from === 'host' && !isAllowed(found.path)) return { problem: OUTSIDE };
    if (from !== 'host' && !found.isDirectory) return { problem: 'is no directory; name the one it lies in' };
    // The owner agreed to that very directory, not to whatever a link may put in its place.
    if (from === 'owner' && found.path !== named.path)
      return { problem: `has become a link to ${found.path}; remove it and add it again` };
    return { uri: pathToFileURL(found.path).href };
  }

  /** Decided by the spelling of the path alone: even to look at it could wake, or wait for, a mount that no host may reach. */
  const mayBeLookedAt = (path: string): boolean =>
    allowed().some((each) => isWithin(resolve(path), resolve(each))) || isAllowed(resolve(path));

  const isAllowed = (path: string): boolean =>
    allowed().some((each) => {
      const directory = look(each);
      return 'path' in directory && isWithin(path, directory.path);
    });

  function complain(from: RootSource, uri: string, problem: string): void {
    const words = complaintOf(uri, problem, ` (${FROM[from]})`);
    if (said.has(words) || !pace.take()) return;
    if (said.size >= MAX_SAID) said.clear();
    said.add(words);
    logger.warn(words);
  }

  return (from, { uri, name }) => {
    const found = realUri(from, uri);
    if ('problem' in found) complain(from, uri, found.problem);
    return { uri, ...found, ...(name && { name }), from };
  };
}

/** For the log, and for the host whose root it is. */
export const complaintOf = (uri: string, problem: string, from = ''): string =>
  `the root ${withoutControls(uri.slice(0, 300))}${from} is not given to servers: it ${problem}`;

const OUTSIDE =
  'lies outside what x-troupe.roots.allow allows; name a directory there that it lies in, or run troupe roots add';
const FROM: Record<RootSource, string> = {
  config: 'from x-troupe.roots.list',
  owner: 'from troupe roots add',
  host: 'from a host',
};

// ── Where a root is on this machine ──────────────────────────────────────────

export type Problem = { readonly problem: string };
/** What is on this disk, under its real path. */
export type OnDisk = { readonly path: string; readonly isDirectory: boolean };

// `new URL` would drop control characters, and take a backslash for a slash.
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

/** Every link on the way is resolved. */
export function onDisk(path: string): OnDisk | Problem {
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

/** The real path that a file has, or would have if it existed. */
export function realName(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path); // a file that does not exist is no link, but a directory above it may be one
    return parent === path ? path : join(realName(parent), basename(path));
  }
}

/** For real paths only. */
export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);

const FRESH_MS = 1_000;
const MAX_SEEN = 10_000;

/** Looks at the disk at most once a second for one path: servers may ask as often as they like. */
export function createLook(world: Pick<World, 'now'>): (path: string) => OnDisk | Problem {
  let seen = new Map<string, OnDisk | Problem>();
  let seenAt = Number.NEGATIVE_INFINITY;
  return (path) => {
    if (world.now() - seenAt > FRESH_MS || seen.size > MAX_SEEN) {
      seen = new Map();
      seenAt = world.now();
    }
    const found = seen.get(path) ?? onDisk(path);
    seen.set(path, found);
    return found;
  };
}
