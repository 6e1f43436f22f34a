// Processes by the variables that they were started with, where the system shows them: on Linux.

import { readdirSync, readFileSync } from 'node:fs';

/** Empty for one that has ended, or is somebody else's. */
export function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

export function startedWith(name: string, value: string): number[] {
  if (process.platform !== 'linux') return [];
  const isOne = (pid: string) => /^\d+$/.test(pid) && environmentOf(pid).split('\0').includes(`${name}=${value}`);
  return readdirSync('/proc').filter(isOne).map(Number);
}
