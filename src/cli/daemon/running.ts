// The running daemon as the command line sees it: its status over the control socket, and whether its process lives.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Paths } from '../../config/paths.ts';
import { readOwn } from '../../files/own.ts';
import type { Status } from '../../operations/status.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { withControl } from '../control.ts';

export type { ServerStatus, Status } from '../../operations/status.ts';

/** The running daemon's status, or nothing when no daemon answers. */
export async function statusOf(paths: Paths): Promise<Status | undefined> {
  try {
    return await withControl(paths.socket, (control) => control.ask('status'));
  } catch (error) {
    if (error instanceof TroupeError && (error.code === 'unavailable' || error.code === 'lost')) return undefined;
    throw error;
  }
}

/** The pid in the daemon's own note, which a clean stop removes and a crash leaves behind. */
export function notedPid(paths: Paths): number | undefined {
  try {
    const { pid } = JSON.parse(String(readOwn(paths.note)));
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined; // no note, or one that is being written
  }
}

/** Resolves to whether the process is gone before the limit. */
export async function untilGone(pid: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(25);
  }
  return true;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return !isZombie(pid);
}

/** In a container without an init a finished daemon stays as a zombie: it runs nothing any more. */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] === 'Z';
  } catch {
    return true; // the process ended between the two looks
  }
}
