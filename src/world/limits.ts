// What a machine gives to one process and can run out of: descriptors, processes, memory. The limits are read once, at the start, and
// shared out: hosts and servers each have a share, and what is left is for our own work, so that a flood of one kind is
// refused while the rest goes on (ADR 26). What the kernel refuses all the same is a shortage: it passes, and is tried again.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

export type Limits = {
  readonly descriptors: number;
  readonly processes: number;
  /** Bytes of memory that the machine, or the container around us, has. */
  readonly memory: number;
};

export type Shares = {
  /** Connections of hosts to the HTTP door, whatever they carry. */
  readonly hosts: number;
  /** Connections to the control socket. */
  readonly control: number;
  /** Processes of servers, and connections to remote ones. */
  readonly servers: number;
  /** Bytes of requests that are on their way in over HTTP. */
  readonly arriving: number;
  /** Bytes of calls that are not answered yet. */
  readonly calls: number;
};

/** Its three pipes, and one more for what is opened while it starts or is watched. */
const DESCRIPTORS_OF_A_SERVER = 4;
/** A server on Node has a dozen threads, each of which counts, and its user runs more than troupe. */
const PROCESSES_OF_A_SERVER = 32;
/** What a system without a word on its limits is taken to give; the least that any in use does. */
const UNKNOWN = { descriptors: 256, processes: 1_024 };
const MIB = 1024 ** 2;

/** An eighth stays ours: the store, the broker, the log, threads, configuration. */
export function sharesOf({ descriptors, processes, memory }: Limits): Shares {
  const eighth = Math.floor(descriptors / 8);
  const servers = Math.min((3 * eighth) / DESCRIPTORS_OF_A_SERVER, processes / PROCESSES_OF_A_SERVER);
  return {
    hosts: Math.min(Math.max(3 * eighth, 8), 4_096),
    control: Math.min(Math.max(eighth, 8), 1_024),
    servers: Math.max(Math.floor(servers), 4),
    arriving: Math.min(Math.max(memory / 16, 32 * MIB), 256 * MIB),
    calls: Math.min(Math.max(memory / 8, 64 * MIB), 512 * MIB),
  };
}

/** Node has raised the soft limit of descriptors to the hard one by the time that anything of ours runs. */
export function readLimits(): Limits {
  const memory = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  try {
    const text = process.platform === 'linux' ? readFileSync('/proc/self/limits', 'latin1') : askShell();
    return { descriptors: softLimit(text, 'open files'), processes: softLimit(text, 'processes'), memory };
  } catch {
    return { ...UNKNOWN, memory };
  }
}

/** In the words of Linux. */
const askShell = (): string => {
  const [files, processes] = execFileSync('/bin/sh', ['-c', 'ulimit -n; ulimit -u'], { encoding: 'latin1' }).split(
    '\n',
  );
  return `Max open files ${files}\nMax processes ${processes}\n`;
};

function softLimit(text: string, what: string): number {
  const [, limit] = new RegExp(`^Max ${what}\\s+(\\d+|unlimited)`, 'm').exec(text) ?? [];
  if (limit === undefined) return what === 'processes' ? UNKNOWN.processes : UNKNOWN.descriptors;
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

/** How many descriptors this process has open; undefined where that cannot be known. */
export function openDescriptors(): number | undefined {
  try {
    return readdirSync(process.platform === 'linux' ? '/proc/self/fd' : '/dev/fd').length;
  } catch (error) {
    return codeOf(error) === 'EMFILE' ? readLimits().descriptors : undefined; // to count them takes one
  }
}

/** How much memory this process has; undefined where that cannot be known: to look takes a descriptor. */
export function residentBytes(): number | undefined {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
}

// ── What the kernel refuses ──────────────────────────────────────────────────

const SHORTAGES: { readonly [code: string]: string } = {
  EMFILE: 'troupe has used all its descriptors; close hosts, or raise ulimit -n',
  ENFILE: 'the machine has no descriptors left; end programs that hold many',
  EAGAIN: 'the machine allows no further process or thread; end some, or raise ulimit -u',
  ENOMEM: 'the machine has no memory left; end programs that take much',
  ENOBUFS: 'the machine has no memory left for connections; end programs that hold many',
};

/** What is short and what would help, if that is why a system call failed. It passes by itself, so the call can be tried again. */
export function shortageOf(error: unknown): string | undefined {
  const code = codeOf(error);
  return code !== undefined && Object.hasOwn(SHORTAGES, code) ? `${SHORTAGES[code]} (${code})` : undefined;
}

const AGAIN_MS = 100;

/** Does the work again for as long as a shortage keeps it from being done: for what must not be taken for failed then. */
export async function outlasting<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!shortageOf(error)) throw error;
      await wait(AGAIN_MS);
    }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined;
