// System calls of a daemon that fail on command: spawn, open, accept, connect, fsync, rename, a new thread, a lookup of a name.
// They fail in the C library (faults.c), not in JavaScript, because SQLite and Node's own code ask the kernel as well.

import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

/** In the order of faults.c. */
const KINDS = ['spawn', 'open', 'accept', 'connect', 'fsync', 'rename', 'thread', 'lookup'] as const;
export type Syscall = (typeof KINDS)[number];
export type Errno = keyof typeof constants.errno;

/** The errors that the kernel gives for each of them when it is short of something, or refuses. */
export const ERRNOS: { readonly [syscall in Syscall]: readonly Errno[] } = {
  spawn: ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'EACCES', 'E2BIG', 'EPERM'],
  open: ['EMFILE', 'ENFILE', 'ENOMEM', 'EIO'],
  accept: ['EMFILE', 'ENFILE', 'ENOMEM', 'ECONNABORTED', 'EPERM'],
  connect: ['EMFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ECONNREFUSED', 'ETIMEDOUT'],
  fsync: ['EIO', 'ENOSPC', 'EDQUOT'],
  rename: ['EIO', 'ENOSPC', 'EACCES', 'EROFS'],
  thread: ['EAGAIN', 'ENOMEM'],
  lookup: ['EAGAIN'],
};

export type Fault = {
  readonly errno: Errno;
  /** So many succeed before. */
  readonly skip?: number;
  /** So many fail; without it, all. */
  readonly times?: number;
  /** Of a thousand; without it, each. */
  readonly permille?: number;
  readonly seed?: number;
};

const INTS = 8;
const BYTES = INTS * 4;
const ERROR = 0;
const FAILED = 5;

/** Only where a C compiler and a C library that can be stood before are found. */
export const hasFaults = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

/** `directory` is where the library and the orders to it lie. */
export function faults(directory: string) {
  const path = join(directory, 'faults');
  writeFileSync(path, Buffer.alloc(KINDS.length * BYTES));
  const file = openSync(path, 'r+');
  const at = (syscall: Syscall, int = 0): number => KINDS.indexOf(syscall) * BYTES + int * 4;

  return {
    /** What the daemon's environment must have. */
    env: { LD_PRELOAD: compiled(directory), FAULTS: path },
    set(syscall: Syscall, { errno, skip = 0, times = -1, permille = 1000, seed = 1 }: Fault): void {
      // The error is written last: until then nothing fails.
      const rest = Int32Array.of(skip, times, permille, seed, 0);
      writeSync(file, rest, 0, rest.byteLength, at(syscall, 1));
      writeSync(file, Int32Array.of(constants.errno[errno]), 0, 4, at(syscall, ERROR));
    },
    clear(): void {
      for (const syscall of KINDS) writeSync(file, Int32Array.of(0), 0, 4, at(syscall, ERROR));
    },
    /** How many have failed since it was set. */
    failed(syscall: Syscall): number {
      const count = new Int32Array(1);
      readSync(file, count, 0, 4, at(syscall, FAILED));
      return count[0] as number;
    },
    [Symbol.dispose]: () => closeSync(file),
  };
}

export type Faults = ReturnType<typeof faults>;

function compiled(directory: string): string {
  const path = join(directory, 'faults.so');
  const source = new URL('faults.c', import.meta.url).pathname;
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-o', path, source, '-ldl', '-pthread']);
  return path;
}
