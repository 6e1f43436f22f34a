// The directory of the databases: ours alone (0700, files 0600), and on a disk where SQLite's WAL is safe.
// Never opens an existing database as a plain file: closing that descriptor would drop the locks SQLite holds on it.

import { chmodSync, closeSync, mkdirSync, openSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sentence, TroupeError } from '../protocol/failures.ts';

/** Makes the directory if need be and returns the path of the file in it, which exists and is private. */
export function prepareFile(directory: string, name: string): string {
  try {
    makeDirectory(directory);
    keepPrivate(directory);
    refuseNetwork(directory);
    const file = join(directory, name);
    createPrivate(file);
    return file;
  } catch (error) {
    throw error instanceof TroupeError ? error : new TroupeError('unavailable', whyNot(directory, error));
  }
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

/** The name of a filesystem that several machines may share, by the type `statfs` gives on Linux. */
export function networkFilesystem(type: number): string | undefined {
  return NETWORK_FILESYSTEMS.get(type >>> 0);
}

const NETWORK_FILESYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x786f4256, 'VirtualBox shared folder'],
]);

function keepPrivate(directory: string): void {
  const found = statSync(directory);
  if (!found.isDirectory()) throw new TroupeError('unavailable', `${directory} is not a directory: ${CHOOSE}.`);
  if (found.mode & 0o1000)
    throw new TroupeError('unavailable', `The directory ${directory} is shared by all users: ${CHOOSE}.`);
  if (isLoose(found)) chmodSync(directory, 0o700);
}

function refuseNetwork(directory: string): void {
  if (process.platform !== 'linux') return; // the numbers mean something else there
  const filesystem = networkFilesystem(statfsSync(directory).type);
  if (filesystem)
    throw new TroupeError('unavailable', `The directory ${directory} is on ${filesystem}: choose one on a local disk.`);
}

function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    const found = statSync(file);
    if (!found.isFile()) throw new TroupeError('unavailable', `${file} is not a file: move it away.`);
    if (isLoose(found)) chmodSync(file, 0o600);
  }
}

function whyNot(directory: string, error: unknown): string {
  switch (errnoOf(error)) {
    case 'EEXIST':
    case 'ENOTDIR':
      return `${directory} cannot be made because a file is in its place: ${CHOOSE}.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `The directory ${directory} cannot be written: make it yours, or ${CHOOSE}.`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of ${directory} is full: free some space there and start again.`;
    default:
      return `The directory ${directory} cannot be used (${sentence(error)}): ${CHOOSE}.`;
  }
}

const CHOOSE = 'choose another directory';
const isLoose = (found: Stats): boolean => (found.mode & 0o077) !== 0;
const errnoOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
