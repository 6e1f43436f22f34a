// What lies in the state directory is ours alone: directories 0700, files 0600, owned by us, and no link among them is followed.
// What is ours but too open is mended. What is not ours is refused: whoever made it could read or replace what we keep there.

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { TroupeError } from '../protocol/failures.ts';
import { kindOf, MOST_BYTES, readBounded } from './regular.ts';

const CHOOSE = 'choose another directory with TROUPE_STATE';

// ── Directories ──────────────────────────────────────────────────────────────

/** Makes the directory if need be. The path is a real one (`realPathsOf`): a link in its last place is refused. */
export function ownDirectory(directory: string): void {
  if (lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink())
    throw refused(`${directory} is a symbolic link, not a directory: move it away.`);
  makeDirectory(directory);
  const found = lstatSync(directory);
  if (found.mode & 0o1000) throw refused(`The directory ${directory} is shared by all users: ${CHOOSE}.`);
  refuseForeign(directory, found);
  refuseOpenWay(directory, found);
  if (isLoose(found)) chmodSync(directory, 0o700);
}

/** Level by level: Node's own recursion never returns where a parent exists but takes no entries, such as /proc. */
export function makeDirectory(directory: string): void {
  if (isDirectory(directory)) return;
  makeDirectory(dirname(directory));
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!isDirectory(directory)) throw error; // else another process was faster
  }
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Whoever may write a directory may rename what is in it; where all may (/tmp), the sticky bit leaves that to the owner. */
function refuseOpenWay(directory: string, found: Stats): void {
  const parent = dirname(directory);
  if (parent === directory) return;
  const above = statSync(parent);
  const isOpen = (above.mode & 0o002) !== 0;
  if (isOpen && (above.mode & 0o1000) === 0)
    throw refused(
      `${parent} of uid ${above.uid} may be written by everybody, who could put another directory in the place of ${directory}: ` +
        `chmod o-w ${quoted(parent)}, or ${CHOOSE}.`,
    );
  if (isOpen && found.uid !== 0) refuseForeign(directory, found);
  refuseOpenWay(parent, above);
}

// ── Files ────────────────────────────────────────────────────────────────────

/** Opens a file that is ours alone, and never anything else that stands at its path. It may be made by `flags`. */
export function openOwn(path: string, flags: number): number {
  const file = openPlainly(path, flags);
  try {
    const found = fstatSync(file);
    refuseOther(path, found);
    if (isLoose(found)) fchmodSync(file, 0o600);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function openPlainly(path: string, flags: number): number {
  try {
    return openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600);
  } catch (error) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found) refuseOther(path, found); // says more than the system's error
    throw error;
  }
}

/** Undefined when there is no such file. */
export function readOwn(path: string): Buffer | undefined {
  let file: number;
  try {
    file = openOwn(path, constants.O_RDONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return readBounded(file, MOST_BYTES);
  } finally {
    closeSync(file);
  }
}

/** A new file each time, which takes the place of the old one: a half-written one is worse than none. */
export function writeOwn(path: string, text: string): void {
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** The same for what another program opens by its path: SQLite, nats-server. The directory around it is ours by then. */
export function checkOwn(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  refuseOther(path, found);
  if (isLoose(found)) chmodSync(path, 0o600);
}

// ── What is refused, and what to do about it ─────────────────────────────────

function refuseOther(path: string, found: Stats): void {
  if (!found.isFile()) throw refused(`${path} is ${kindOf(found)}, not a file: move it away.`);
  refuseForeign(path, found);
}

function refuseForeign(path: string, { uid }: Stats): void {
  const me = process.geteuid?.() ?? uid;
  if (uid === me) return;
  throw refused(
    `${path} belongs to uid ${uid}, not to you: if you made it as another user, chown -R ${me} ${quoted(path)}; ` +
      'else move it away.',
  );
}

const refused = (message: string): TroupeError => new TroupeError('unavailable', message);
const isLoose = ({ mode }: Stats): boolean => (mode & 0o077) !== 0;
const quoted = (path: string): string => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
