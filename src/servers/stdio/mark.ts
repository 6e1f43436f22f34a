// The mark of every process that one life of a daemon starts. It names the daemon, so that the next one finds what a killed one
// left; and the process of that life, so that nothing is ended whose daemon still runs: where a state directory was replaced,
// two daemons of one name live for a moment.

import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { processIdentity } from '../../store/process-identity.ts';

const BEFORE_LIFE = ':';
/** A process that was killed has lost its locks a moment before it is gone. */
const DYING_MS = 1_000;
const POLL_MS = 20;

/** A new one for each life of the daemon. */
export async function newMark(daemon: string): Promise<string> {
  const startTime = (await processIdentity(process.pid))?.startTime ?? '';
  return `${daemon}${BEFORE_LIFE}${process.pid}.${plain(startTime)}.${randomBytes(4).toString('hex')}`;
}

/** The daemon that a mark names, whichever life it was. */
export const daemonOf = (mark: string): string => mark.split(BEFORE_LIFE, 1)[0] as string;

/** Whether the process of that life runs. */
export async function isLiving(mark: string): Promise<boolean> {
  const [pid = '', startTime] = mark.slice(daemonOf(mark).length + 1).split('.');
  if (!/^\d+$/.test(pid)) return false; // the mark of an older version, whose daemon has given its lock back
  const found = await processIdentity(Number(pid));
  return found !== undefined && plain(found.startTime) === startTime;
}

/** The same for a daemon whose lock we hold: one that looks alive may be in its last moment. */
export async function isLivingOn(mark: string): Promise<boolean> {
  const deadline = performance.now() + DYING_MS;
  while (await isLiving(mark)) {
    if (performance.now() > deadline) return true;
    await wait(POLL_MS);
  }
  return false;
}

/** `ps` writes a date with spaces. */
const plain = (startTime: string): string => startTime.replaceAll(/\W/g, '');
