// After `kill -9` of a daemon its servers may live on. Each was written down with its start time and boot, so the next
// daemon can end exactly those and never a stranger that was given the same pid.

import { readdir, readFile } from 'node:fs/promises';
import { MARKER } from '../../protocol/version.ts';
import { processIdentity } from '../../store/process-identity.ts';
import type { Store } from '../../store/store.ts';
import { signalGroup } from './child.ts';

type ProcessRow = {
  kind: string;
  name: string;
  pid: number;
  start_time: string;
  boot_id: string;
  daemon: string | null;
};

/**
 * Ends the processes that earlier, dead runs of this daemon have left: `isTheirs` knows them by the mark in their row.
 * Returns the names of the servers whose processes had been left behind.
 */
export async function sweep(store: Store, marker: string, isTheirs: (mark: string) => boolean): Promise<string[]> {
  const rows = store
    .all<ProcessRow>('processes')
    .filter(({ kind, daemon }) => kind === 'server' && isTheirs(daemon ?? ''));
  const swept: string[] = [];
  for (const { kind, name, pid, start_time, boot_id } of rows) {
    if (await isOurs(pid, { startTime: start_time, bootId: boot_id })) {
      signalGroup(pid, 'SIGKILL');
      swept.push(name);
    }
    // Not waited for: a row that stays does no harm, because a process is known by more than its pid.
    store.write('deleteProcess', [kind, name, pid]);
  }
  for (const pid of await endMarked(marker)) swept.push(`pid ${pid}`);
  return swept;
}

/** Ends all processes that carry the mark, and returns their pids: descendants of servers that left their process group. */
export async function endMarked(marker: string): Promise<number[]> {
  const pids = await marked(marker);
  for (const pid of pids) kill(pid);
  return pids;
}

/** A dead leader may have left its group behind; the kernel does not give its pid away while the group lives. */
async function isOurs(pid: number, identity: { startTime: string; bootId: string }): Promise<boolean> {
  const found = await processIdentity(pid);
  if (!found) return (await processIdentity(process.pid))?.bootId === identity.bootId;
  return found.startTime === identity.startTime && found.bootId === identity.bootId;
}

/** Processes that left their group still carry our mark in their environment. Only Linux lets us look for it. */
async function marked(marker: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const needle = `${MARKER}=${marker}`;
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
  const carriers = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return environment.split('\0').includes(needle) ? [pid] : [];
    }),
  );
  return carriers.flat();
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it ended in the meantime
}
