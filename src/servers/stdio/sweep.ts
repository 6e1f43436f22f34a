// After `kill -9` of a daemon its servers may live on. Each was written down with its start time and boot, so the next
// daemon can end exactly those and never a stranger that was given the same pid. So was each life of a daemon, by whose mark
// their descendants are found.

import { processIdentity } from '../../store/process-identity.ts';
import type { ProcessRow, Store } from '../../store/store.ts';
import { endLife, groupsHere } from './cgroup.ts';
import { signalGroup } from './child.ts';
import { daemonOf, isLiving, isLivingOn } from './mark.ts';
import { endLeft, endMarked } from './strays.ts';

const KINDS = ['server', 'daemon'];

/**
 * Ends the processes that earlier, dead lives of a daemon have left: `isTheirs` knows them by the mark in their row.
 * Returns the names of the servers whose processes had been left behind.
 */
export async function sweep(store: Store, daemon: string, isTheirs: (mark: string) => boolean): Promise<string[]> {
  const theirs = store.all<ProcessRow>('processes').filter((row) => KINDS.includes(row.kind) && isTheirs(markOf(row)));
  const dead = await without(new Set(theirs.map(markOf)), isLivingOn);
  const swept: string[] = [];
  for (const { kind, name, pid, start_time, boot_id } of theirs.filter((row) => dead.has(markOf(row)))) {
    if (kind === 'server' && (await isOurs(pid, { startTime: start_time, bootId: boot_id }))) {
      signalGroup(pid, 'SIGKILL');
      swept.push(name);
    }
    // Not waited for: a row that stays does no harm, because a process is known by more than its pid.
    store.write('deleteProcess', [kind, name, pid]);
  }
  for (const pid of await endLeft(dead, daemon)) swept.push(`pid ${pid}`);
  const groups = groupsHere().filter((mark) => dead.has(mark) || daemonOf(mark) === daemon);
  for (const mark of await without(new Set(groups), isLiving)) await endLife(mark);
  return swept;
}

/** Ends what is left of this life's servers, and returns their pids: descendants that left their process group. */
export async function endStrays(mark: string): Promise<number[]> {
  const pids = await endMarked([mark]);
  await endLife(mark);
  return pids;
}

/** Writes down that a daemon of this name lives; returns how to take that back. */
export async function noteLife(store: Store, name: string, mark: string): Promise<() => void> {
  const identity = await processIdentity(process.pid);
  if (!identity) return () => {};
  const { startTime, bootId } = identity;
  store.write('putProcess', ['daemon', name, process.pid, startTime, bootId, mark, Date.now()]);
  return () => store.write('deleteProcess', ['daemon', name, process.pid]);
}

const markOf = ({ daemon }: ProcessRow): string => daemon ?? '';

async function without(marks: Set<string>, isAlive: (mark: string) => Promise<boolean>): Promise<Set<string>> {
  for (const mark of [...marks]) if (await isAlive(mark)) marks.delete(mark);
  return marks;
}

/** A dead leader may have left its group behind; the kernel does not give its pid away while the group lives. */
async function isOurs(pid: number, identity: { startTime: string; bootId: string }): Promise<boolean> {
  const found = await processIdentity(pid);
  if (!found) return (await processIdentity(process.pid))?.bootId === identity.bootId;
  return found.startTime === identity.startTime && found.bootId === identity.bootId;
}
