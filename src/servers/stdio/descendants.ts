// The processes that our servers are or have started, told by what we started, by the marks that they carry (strays.ts), by their
// parent and by their session; and the sockets that they hold. Only Linux shows other processes' sockets.

import { readlinkSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { processIdentity } from '../../store/process-identity.ts';
import { shortageOf } from '../../world/limits.ts';
import { isServers as carriesMark } from './strays.ts';

/** What was found of a process when it was first seen: later it may have another parent, and still be a server's. */
type Seen = { readonly inode: number; readonly isServers: boolean };
type Origin = {
  readonly pid: number;
  readonly inode: number;
  readonly parent: number;
  readonly session: number;
  readonly isMarked: boolean;
};

/**
 * Every socket that a server's process holds now, by its inode. `mark` is of this life of the daemon; `family` begins the marks
 * of all daemons on the state directory. Rejects when the machine is too short of something to tell.
 */
export function serversSockets(mark: string, family: string): () => Promise<Pick<ReadonlySet<string>, 'has'>> {
  let known = new Map<number, Seen>();
  let lookedAt = Number.NEGATIVE_INFINITY;

  /** Each process is read once in its life; the inode of its directory says whether a pid was given away again. */
  async function look(): Promise<{ readonly servers: number[]; readonly others: number[] }> {
    const isSoon = performance.now() - lookedAt < SOON_MS;
    lookedAt = performance.now();
    const next = new Map<number, Seen>();
    const strangers: number[] = [];
    for (const pid of await pids()) {
      const seen = isSoon ? known.get(pid) : undefined;
      if (seen) next.set(pid, seen);
      else strangers.push(pid);
    }
    const origins = await all(strangers, async (pid) => {
      const { ino } = await stat(`/proc/${pid}`);
      const seen = known.get(pid);
      if (seen?.inode !== ino) return originOf(pid, ino, await carriesMark(pid, mark, family));
      next.set(pid, seen);
      return undefined;
    });
    judge(
      origins.filter((origin) => origin !== undefined),
      next,
    );
    known = next;
    const pidsOf = (wanted: boolean) =>
      [...next].flatMap(([pid, { isServers }]) => (isServers === wanted ? [pid] : []));
    return { servers: pidsOf(true), others: [1, process.pid, ...pidsOf(false)] };
  }

  return async () => {
    const { servers, others } = await look();
    const held = await all(servers, socketsOf);
    if (!held.includes('hidden')) return new Set(held.flat());
    // It may hold any socket that nobody else is seen to hold.
    const seen = new Set((await all(others, socketsOf)).flat());
    return { has: (inode) => !seen.has(inode) };
  };
}

/** The kernel goes through all other pids before it gives one away again, which takes longer than this. */
const SOON_MS = 1_000;

async function pids(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
}

async function originOf(pid: number, inode: number, isMarked: boolean): Promise<Origin> {
  const line = await readFile(`/proc/${pid}/stat`, 'latin1');
  // The second field is the command in parentheses, and a command may itself hold parentheses and spaces.
  const [, parent, , session] = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { pid, inode, parent: Number(parent), session: Number(session), isMarked };
}

function judge(origins: readonly Origin[], seen: Map<number, Seen>): void {
  const unjudged = new Map(origins.map((origin) => [origin.pid, origin]));
  const isServers = (pid: number): boolean => {
    const origin = unjudged.get(pid);
    if (!origin) return seen.get(pid)?.isServers === true;
    unjudged.delete(pid);
    const { inode, parent, session, isMarked } = origin;
    const verdict = isMarked || parent === process.pid || isServers(parent) || isServers(session);
    seen.set(pid, { inode, isServers: verdict });
    return verdict;
  };
  for (const { pid } of origins) isServers(pid);
}

/** Hidden, where the kernel does not show them: a process whose program may not be read, or has capabilities, for instance. */
async function socketsOf(pid: number): Promise<string[] | 'hidden'> {
  const directory = `/proc/${pid}/fd`;
  try {
    const fds = await readdir(directory);
    return fds.flatMap((fd) => /^socket:\[(\d+)\]$/.exec(targetOf(`${directory}/${fd}`))?.[1] ?? []);
  } catch (error) {
    if (!isHidden(error)) throw error;
    return (await processIdentity(pid)) ? 'hidden' : []; // one that is dead holds none
  }
}

/** Not in the thread pool: such a link is read in less time than it takes to ask there. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (isHidden(error)) throw error;
    return ''; // it was closed meanwhile
  }
}

const isHidden = (error: unknown): boolean =>
  ['EACCES', 'EPERM'].includes(String((error as NodeJS.ErrnoException).code));

/** What could be read of them: processes come and go meanwhile. One that could not be read for a shortage has not gone. */
async function all<Item, Found>(items: readonly Item[], read: (item: Item) => Promise<Found>): Promise<Found[]> {
  const settled = await Promise.allSettled(items.map(read));
  for (const each of settled) if (each.status === 'rejected' && shortageOf(each.reason)) throw each.reason;
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}
