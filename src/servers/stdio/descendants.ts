// The processes that our servers are or have started, told by what we started, by the mark in their environment, by their parent
// and by their session; and the sockets that they hold. Only Linux shows other processes' sockets.
// A process that has left its session, emptied its environment and outlived its parent before we looked is not known any more.

import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { MARKER } from './child.ts';

/** What was found of a process when it was first seen: later it may have another parent, and still be a server's. */
type Seen = { readonly inode: number; readonly isServers: boolean };
type Origin = {
  readonly pid: number;
  readonly inode: number;
  readonly parent: number;
  readonly session: number;
  readonly isMarked: boolean;
};

/** Every socket that a server's process holds now, by its inode. `family` begins the marks of all daemons on the state directory. */
export function serversSockets(family: string): () => Promise<ReadonlySet<string>> {
  let known = new Map<number, Seen>();

  /** Each process is read once in its life; the inode of its directory says whether a pid was given away again. */
  async function look(): Promise<number[]> {
    const found = await all(await pids(), async (pid) => ({ pid, inode: (await stat(`/proc/${pid}`)).ino }));
    const isKnown = ({ pid, inode }: { pid: number; inode: number }) => known.get(pid)?.inode === inode;
    const next = new Map(found.filter(isKnown).map(({ pid }) => [pid, known.get(pid) as Seen]));
    const origins = await all(
      found.filter((each) => !isKnown(each)),
      ({ pid, inode }) => originOf(pid, inode, family),
    );
    judge(origins, next);
    known = next;
    return [...next].filter(([, { isServers }]) => isServers).map(([pid]) => pid);
  }

  return async () => new Set((await all(await look(), socketsOf)).flat());
}

async function pids(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
}

async function originOf(pid: number, inode: number, family: string): Promise<Origin> {
  const [line, environment] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'latin1'),
    readFile(`/proc/${pid}/environ`, 'latin1').catch(() => ''), // another user's, and no server of ours
  ]);
  // The second field is the command in parentheses, and a command may itself hold parentheses and spaces.
  const [, parent, , session] = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const isMarked = `\0${environment}`.includes(`\0${MARKER}=${family}`);
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

async function socketsOf(pid: number): Promise<string[]> {
  const directory = `/proc/${pid}/fd`;
  const targets = await all(await readdir(directory), (fd) => readlink(`${directory}/${fd}`));
  return targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []);
}

/** What could be read of them: processes and descriptors come and go meanwhile. */
async function all<Item, Found>(items: readonly Item[], read: (item: Item) => Promise<Found>): Promise<Found[]> {
  const settled = await Promise.allSettled(items.map(read));
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}
