// Why servers are not ready, in full, below the table that has no room for it. The last words of a server that died stand only
// in the log, which is its owner's: they are read from there, and the daemon itself never says them.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { flat } from '../terminal/table.ts';
import { folded, quoted } from '../terminal/words.ts';
import type { Output } from '../verb.ts';
import type { ServerStatus } from './running.ts';

type Troubled = Pick<ServerStatus, 'name' | 'state' | 'since' | 'lastError' | 'trouble'>;

/** Nothing where every server is well and always was. */
export async function troubleText(output: Output, servers: readonly Troubled[], logFile: string): Promise<string> {
  const texts = servers
    .filter(({ lastError, trouble }) => trouble ?? lastError)
    .map(async (server) => {
      const { name, state, lastError, trouble } = server;
      const isOver = !trouble && (state === 'ready' || state === 'asleep');
      const sentence = `${name}${isOver ? ` is ${state} again; before` : ` is ${state}`}: ${trouble ?? lastError}`;
      const [first = '', ...rest] = folded(flat(sentence), output.width);
      const head = isOver ? output.paint('dim', first) : output.paint('yellow', first);
      const words = isOver ? undefined : await lastWords(logFile, server);
      return [head, ...rest, ...(words ? [quoted(output, words)] : [])].join('\n');
    });
  return (await Promise.all(texts)).join('\n');
}

const TAIL_BYTES = 512 * 1024;
const FRESH_MS = 2_000;
const WAIT_MS = 1_000;
const LOOK_MS = 50;
const LONGEST = 1_000;

type Entry = {
  readonly server?: string;
  readonly source?: string;
  readonly state?: string;
  readonly time?: number;
  readonly msg?: string;
};

/** What the server's process said last on stderr. The log is written behind: the words of a fresh death are waited for. */
export async function lastWords(logFile: string, { name, state, since }: Troubled): Promise<string | undefined> {
  const deadline = performance.now() + WAIT_MS;
  const isFresh = Date.now() - since < FRESH_MS;
  for (;;) {
    const entries = tailOf(logFile).filter(({ server }) => server === name);
    const isWritten = entries.some((entry) => entry.state === state && Number(entry.time) >= since);
    if (!isFresh || isWritten || performance.now() > deadline) return tellingLine(ofLastLife(entries));
    await sleep(LOOK_MS);
  }
}

/** The lines of stderr since the server was last launched, or of the launch before, if it has said nothing yet. */
function ofLastLife(entries: readonly Entry[]): string[] {
  const lives: string[][] = [[]];
  for (const { source, state, msg } of entries) {
    if (state === 'opening') lives.push([]);
    else if (source === 'stderr' && msg) lives.at(-1)?.push(msg);
  }
  return lives.findLast((life) => life.length > 0) ?? [];
}

/** A process that died usually said why, but not always on its last line: a stack trace may follow. */
function tellingLine(lines: readonly string[]): string | undefined {
  const said = withoutTrace(lines);
  const words = said.findLast((line) => /error|fail|cannot|denied|not found|missing|required|refused/i.test(line));
  return (words ?? said.at(-1))?.slice(0, LONGEST);
}

/** Lines of stderr but for those that only say where in a program it happened. */
export const withoutTrace = (lines: readonly string[]): string[] =>
  lines.filter((line) => !/^\s+at |^Node\.js v|^\s*[\^~}\])]+\s*$/.test(line));

function tailOf(path: string): Entry[] {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return []; // there is no log, or it is not ours to read
  }
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const count = readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    return bytes.subarray(0, count).toString().split('\n').flatMap(entryOf);
  } finally {
    closeSync(fd);
  }
}

function entryOf(line: string): Entry[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line)] : [];
  } catch {
    return []; // the beginning was cut off, or the end is not written yet
  }
}
