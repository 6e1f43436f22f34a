// The directory of the databases: ours alone, and on a disk where SQLite's WAL is safe.
// Never opens an existing database as a plain file: closing that descriptor would drop the locks SQLite holds on it.

import { closeSync, openSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { checkOwn, ownDirectory } from '../files/own.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';

/** Makes the directory if need be and returns the path of the file in it, which exists and is private. */
export function prepareFile(directory: string, name: string): string {
  try {
    ownDirectory(directory);
    refuseNetwork(directory);
    const file = join(directory, name);
    createPrivate(file);
    return file;
  } catch (error) {
    throw error instanceof TroupeError ? error : new TroupeError('unavailable', whyNot(directory, error));
  }
}

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
  }
  for (const suffix of ['', '-wal', '-shm', '-journal']) checkOwn(file + suffix); // SQLite would follow a link
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
const errnoOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
