// Who holds the write lock of the database. A process that was stopped in the middle of a write keeps it, and everybody else
// waits until somebody continues or ends that process: so its number is told.

import { readFileSync, statSync } from 'node:fs';

/** SQLite's lock for writers of a WAL is this byte of the file with the WAL's index. */
const WRITE_LOCK = 120;
const UNKNOWN = 'another program: end that program';

/** By whom the database is locked, and the remedy. Only Linux tells; a process of another container has no number here. */
export function holderOf(file: string): string {
  try {
    const { ino } = statSync(`${file}-shm`);
    const line = new RegExp(`POSIX +ADVISORY +WRITE (\\d+) \\S+:${ino} ${WRITE_LOCK} `);
    const pid = Number(line.exec(readFileSync('/proc/locks', 'latin1'))?.[1] ?? 0);
    if (pid === 0) return UNKNOWN;
    return isStopped(pid)
      ? `process ${pid}, which is stopped: continue it (kill -CONT ${pid}) or end it`
      : `process ${pid}: end that program`;
  } catch {
    return UNKNOWN; // no such table on this system, or the holder is just gone
  }
}

const isStopped = (pid: number): boolean => /^State:\s+t/im.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
