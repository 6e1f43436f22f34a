// The cgroup (version 2) of one life of a daemon, below the one in which the daemon itself runs, with a group in it for each process
// of a server. No controller is enabled: it only holds together what belongs together. Nobody leaves it by forking.

import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { outlasting, shortageOf } from '../../world/limits.ts';

const PREFIX = 'troupe-';
const ENOUGH_MS = 1_000;
const POLL_MS = 10;

/**
 * Makes a group for one process of a server and returns its folder; undefined where none may be made. Throws when the machine
 * is too short of something to tell.
 */
export function makeGroup(mark: string, name: string): string | undefined {
  const life = lifeGroup(mark);
  if (life === undefined) return undefined;
  try {
    accessSync(join(life, '..', 'cgroup.procs'), constants.W_OK); // or nobody could be moved out of it
    const folder = join(life, name);
    for (const each of [life, folder]) mkdirSync(each, { recursive: true });
    return folder;
  } catch {
    return undefined; // not delegated to us, read-only, or too many
  }
}

/** Where a process writes its pid to come in. */
export const doorOf = (folder: string): string => join(folder, 'cgroup.procs');

/** Ends all that is in the group, whatever it has become, and removes the group. */
export const endGroup = (folder: string): Promise<void> =>
  outlasting(async () => {
    for (const deadline = performance.now() + ENOUGH_MS; performance.now() < deadline; await wait(POLL_MS)) {
      killAll(folder);
      if (remove(folder)) return;
    }
  });

/** The same without waiting for it, as far as it can be done now. */
export function killGroup(folder: string): void {
  try {
    killAll(folder);
  } catch {} // there is no descriptor left to do it with
}

function killAll(folder: string): void {
  if (isOurs(folder)) return killEach(folder);
  try {
    writeFileSync(join(folder, 'cgroup.kill'), '1');
  } catch (error) {
    if (shortageOf(error)) throw error;
    killEach(folder); // a kernel before 5.14, or the group is gone
  }
}

export const endLife = async (mark: string): Promise<void> => {
  const folder = lifeGroup(mark);
  if (folder !== undefined) await endGroup(folder);
};

/** The marks of the lives that have a group beside our own. */
export function groupsHere(): string[] {
  const folder = ownFolder();
  if (folder === undefined) return [];
  return foldersIn(folder).flatMap((name) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}

/** The marks of the lives in whose groups a process is, by the text of its /proc/<pid>/cgroup. */
export const marksIn = (membership: string): string[] =>
  [...membership.matchAll(/\/troupe-([^/\s]+)/g)].map(([, mark = '']) => mark);

function lifeGroup(mark: string): string | undefined {
  const folder = ownFolder();
  return folder && join(folder, PREFIX + mark);
}

/** A daemon that was started by what it is to end, a shell of an old server say, must not end itself. */
const isOurs = (folder: string): boolean => `${ownFolder()}/`.startsWith(`${folder}/`);

function killEach(folder: string): void {
  for (const pid of textOf(doorOf(folder)).split('\n').map(Number)) {
    if (pid > 0 && pid !== process.pid) kill(pid);
  }
  for (const name of foldersIn(folder)) killEach(join(folder, name));
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it ended in the meantime
}

/** Whether the group is gone; it stays while a process in it lives. */
function remove(folder: string): boolean {
  try {
    for (const name of foldersIn(folder)) remove(join(folder, name));
    rmdirSync(folder);
    return true;
  } catch (error) {
    if (shortageOf(error)) throw error;
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

// ── Where it is ──────────────────────────────────────────────────────────────

let known: { readonly folder: string | undefined } | undefined;

/** The folder of the group in which this process runs. It is looked for once: nobody is moved about while it works. */
function ownFolder(): string | undefined {
  known ??= { folder: process.platform === 'linux' ? findFolder() : undefined };
  return known.folder;
}

function findFolder(): string | undefined {
  const path = /^0::(\/.*)$/m.exec(textOf('/proc/self/cgroup'))?.[1];
  if (path === undefined || path.includes('/..')) return undefined; // a group that this namespace does not show
  for (const line of textOf('/proc/self/mountinfo').split('\n')) {
    const [, , , root = '', point = ''] = line.split(' ');
    if (!line.includes(' - cgroup2 ')) continue;
    const above = root === '/' ? '' : root;
    if (path === root || path.startsWith(`${above}/`)) return join(unescaped(point), path.slice(above.length));
  }
  return undefined;
}

/** The kernel writes a space in a path as \040. */
const unescaped = (path: string): string =>
  path.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch (error) {
    if (shortageOf(error)) throw error;
    return []; // it is gone
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (shortageOf(error)) throw error;
    return '';
  }
}
