// What identifies a process: not its pid alone, which the kernel hands out again, but pid, start time and boot.
// On Linux both are files; elsewhere `ps` and `sysctl` know them.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { outlasting } from '../world/limits.ts';

export type Identity = { readonly startTime: string; readonly bootId: string };

/** Undefined when no such process runs. A zombie does not: it only waits for its parent to collect its exit code. */
export async function processIdentity(pid: number): Promise<Identity | undefined> {
  const startTime = (await startTimeFromProc(pid)) ?? (await startTimeFromPs(pid));
  return startTime ? { startTime, bootId: await bootId() } : undefined;
}

export async function isSame(pid: number, identity: Identity): Promise<boolean> {
  const found = await processIdentity(pid);
  return found?.startTime === identity.startTime && found.bootId === identity.bootId;
}

async function startTimeFromProc(pid: number): Promise<string | undefined> {
  try {
    const stat = await readWhenPossible(`/proc/${pid}/stat`);
    // The second field is the command in parentheses, and a command may itself hold parentheses and spaces.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? undefined : fields[18];
  } catch {
    return undefined; // no such process, or no /proc on this system
  }
}

async function startTimeFromPs(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') return undefined;
  const [, state, started] =
    /^\s*(\S+)\s+(.+)$/.exec(await run('ps', ['-o', 'stat=,lstart=', '-p', String(pid)])) ?? [];
  return !started || state?.startsWith('Z') ? undefined : started.trim();
}

let knownBootId: Promise<string> | undefined;

/** The same for all processes from one start of the machine to the next. */
export function bootId(): Promise<string> {
  knownBootId ??= readBootId();
  return knownBootId;
}

async function readBootId(): Promise<string> {
  try {
    return (await readWhenPossible('/proc/sys/kernel/random/boot_id')).trim();
  } catch {
    // The time of the boot is the second choice: macOS moves it when the clock is set.
    const stdout = await run('sysctl', ['-n', 'kern.bootsessionuuid', 'kern.boottime']);
    return stdout.trim().split('\n')[0] || 'unknown';
  }
}

/** A process must not be taken for gone because there was no descriptor left to look for it. */
const readWhenPossible = (path: string): Promise<string> => outlasting(() => readFile(path, 'latin1'));

/** What a command says; nothing when it fails. */
const run = (command: string, args: readonly string[]): Promise<string> =>
  outlasting(() => promisify(execFile)(command, args)).then(
    ({ stdout }) => stdout,
    () => '',
  );
