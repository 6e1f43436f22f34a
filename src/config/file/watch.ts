// Tells when the content of the configuration file has changed, however that came about: written in place, replaced by
// a rename, created late, or swapped behind a symbolic link. Events are only hints; the content decides.

import { createHash } from 'node:crypto';
import { lstatSync, readlinkSync } from 'node:fs';
import { join, parse, resolve, sep } from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import { readRegular } from '../../files/regular.ts';

/** Editors write in several steps, and one change should be one call; but a busy folder must not delay the call for ever. */
const QUIET_MS = 100;
const LONGEST_WAIT_MS = 1_000;
const MOST_LINKS = 40;

export function watchConfig(path: string, onChange: () => void): { close(): Promise<void> } {
  const file = resolve(path);
  let seen = fingerprint(file);
  let folders: Folders = new Map();
  let watcher: FSWatcher | undefined;
  let timer: NodeJS.Timeout | undefined;
  let firstHint = 0;
  let goodbye: Promise<unknown> = Promise.resolve();

  // A folder that was replaced, or in which the file lies now, needs a new watch; the file is looked at again once that is ready.
  const follow = () => {
    const current = foldersOf(file);
    if (watcher && isSame(current, folders)) return;
    goodbye = Promise.all([goodbye, watcher?.close()]);
    folders = current;
    // Only folders are watched: a watch on the file itself is lost with the first rename over it.
    watcher = watch([...current.keys()], { depth: 0, ignoreInitial: true, ignored: (entry) => !current.has(entry) });
    watcher.on('ready', hint).on('all', hint).on('raw', hint).on('error', hint);
  };
  const hint = () => {
    const now = Date.now();
    if (timer) clearTimeout(timer);
    else firstHint = now;
    timer = setTimeout(look, Math.max(0, Math.min(QUIET_MS, firstHint + LONGEST_WAIT_MS - now)));
  };
  const look = () => {
    timer = undefined;
    follow();
    const now = fingerprint(file);
    if (now === seen) return;
    seen = now;
    onChange();
  };
  follow();
  return {
    async close() {
      clearTimeout(timer);
      await Promise.all([goodbye, watcher?.close()]);
    },
  };
}

/** Folders by path, each with its inode. */
type Folders = Map<string, number>;

function isSame(a: Folders, b: Folders): boolean {
  return a.size === b.size && [...a].every(([folder, inode]) => b.get(folder) === inode);
}

/**
 * Every folder in which a change can give the path another meaning: those that hold a link of the path, and the last one,
 * which holds the file or the first part that does not exist yet.
 */
function foldersOf(file: string): Folders {
  const folders: Folders = new Map();
  const add = (folder: string) => folders.set(folder, entryAt(folder)?.ino ?? 0);
  const { root } = parse(file);
  const partsOf = (path: string) => path.slice(root.length).split(sep);
  let at = root;
  let rest = partsOf(file);
  for (let links = 0; links < MOST_LINKS; ) {
    const [part = '', ...others] = rest;
    const next = join(at, part);
    const link = linkOf(next);
    if (link !== undefined) {
      // Links in the root are the system's own (/tmp on macOS), and the root is too busy to watch.
      if (at !== root) add(at);
      links++;
      rest = partsOf(resolve(at, link, ...others));
      at = root;
    } else if (others.length > 0 && entryAt(next)?.isDirectory()) {
      rest = others;
      at = next;
    } else {
      add(at);
      break;
    }
  }
  return folders;
}

// A file may vanish between two looks, or be forbidden to us: both count as missing.
function entryAt(path: string) {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // most often because it is no link
  }
}

function fingerprint(file: string): string {
  try {
    return createHash('sha256').update(readRegular(file)).digest('hex');
  } catch {
    return 'unreadable';
  }
}
