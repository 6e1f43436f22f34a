// Processes that a server has started and that are no longer in its process group. Linux shows for each process what marks it:
// the environment that it was started with, its cgroup, and its limits. Other systems do not let us look.

import { readdir, readFile, readlink } from 'node:fs/promises';
import { MARKER } from '../../protocol/version.ts';
import { processIdentity } from '../../store/process-identity.ts';
import { outlasting, shortageOf } from '../../world/limits.ts';
import { marksIn } from './cgroup.ts';
import { lifeIn, lifeOf, limitIn } from './limit-mark.ts';
import { daemonOf, isLiving } from './mark.ts';

/** Who is being ended may fork; a process that outruns this is held by nobody but a cgroup. */
const MOST_ROUNDS = 10;

/** Ends all processes that carry one of the marks, and returns their pids. */
export function endMarked(marks: Iterable<string>): Promise<number[]> {
  return endAll(carriersOf(new Set(marks)));
}

/** The same; and those that carry a mark of this daemon from a life of which nothing is written down, if it is over. */
export function endLeft(marks: Iterable<string>, daemon: string): Promise<number[]> {
  const known = new Set(marks);
  const isKnown = carriersOf(known);
  return endAll(async (pid) => {
    if (await isKnown(pid)) return true;
    const [mark] = (await textMarksOf(pid)).filter((each) => daemonOf(each) === daemon);
    // In another namespace, a container's, a pid means another process.
    return mark !== undefined && (await isInOurNamespace(pid)) && !(await isLiving(mark));
  });
}

/** Ends the descendants of one process of a server. */
export async function endLimited(limit: bigint): Promise<void> {
  await endAll(async (pid) => (await limitOf(pid)) === limit);
}

/** Whether a process is a server of that life of a daemon, or of a daemon of that family, or was started by one. */
export async function isServers(pid: number, mark: string, family: string): Promise<boolean> {
  if (await carriersOf(new Set([mark]))(pid)) return true;
  return (await textMarksOf(pid)).some((each) => each.startsWith(family));
}

function carriersOf(marks: ReadonlySet<string>): (pid: number) => Promise<boolean> {
  const lives = new Set([...marks].map(lifeOf));
  return async (pid) => {
    const limit = await limitOf(pid);
    if (limit !== undefined && lives.has(lifeIn(limit))) return true;
    return (await textMarksOf(pid)).some((mark) => marks.has(mark));
  };
}

async function endAll(isMeant: (pid: number) => Promise<boolean>): Promise<number[]> {
  const ended = new Set<number>();
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const found = await outlasting(() => livingOnes(isMeant)); // or those would be passed over that cannot be looked at now
    if (found.length === 0) break;
    for (const pid of found) {
      ended.add(pid);
      kill(pid);
    }
  }
  return [...ended];
}

async function livingOnes(isMeant: (pid: number) => Promise<boolean>): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const names = await readdir('/proc').catch(nothingUnlessShort([]));
  const pids = names.map(Number).filter((pid) => pid > 1 && pid !== process.pid);
  const found = await Promise.all(
    pids.map(async (pid) => ((await isMeant(pid)) && (await processIdentity(pid)) ? [pid] : [])),
  );
  return found.flat();
}

async function textMarksOf(pid: number): Promise<string[]> {
  const [environment, membership] = await Promise.all([textOf(pid, 'environ'), textOf(pid, 'cgroup')]);
  const carried = environment.split('\0').find((each) => each.startsWith(`${MARKER}=`));
  return [...(carried === undefined ? [] : [carried.slice(MARKER.length + 1)]), ...marksIn(membership)];
}

const limitOf = async (pid: number): Promise<bigint | undefined> => limitIn(await textOf(pid, 'limits'));

const textOf = (pid: number, file: string): Promise<string> =>
  readFile(`/proc/${pid}/${file}`, 'latin1').catch(nothingUnlessShort('')); // it is gone, or not ours to look at

/** That there was no descriptor left to look at something does not mean that there is nothing. */
const nothingUnlessShort =
  <Nothing>(nothing: Nothing) =>
  (error: unknown): Nothing => {
    if (shortageOf(error)) throw error;
    return nothing;
  };

async function isInOurNamespace(pid: number): Promise<boolean> {
  const [its, ours] = await Promise.all([pid, 'self'].map((each) => readlink(`/proc/${each}/ns/pid`).catch(() => '')));
  return its !== '' && its === ours;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it ended in the meantime
}
