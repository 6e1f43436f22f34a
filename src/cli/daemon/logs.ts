// `logs`: the daemon's log, each server's stderr and its MCP log messages, read from the file, daemon or no daemon.

import { closeSync, constants, existsSync, fstatSync, readSync, statSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwn } from '../../files/own.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { printable } from '../../telemetry/printable.ts';
import { type Cli, OK, type Output, type Style, usage } from '../verb.ts';
import { statusOf } from './running.ts';

type LogOptions = { readonly follow?: boolean; readonly level?: string; readonly lines: string };

const LEVELS = { trace: 10, debug: 20, info: 30, notice: 30, warn: 40, warning: 40, error: 50, fatal: 60 } as const;
const NAMES: Record<number, [string, Style]> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
};
const POLL_MS = 200;
/** Fields that the line shows elsewhere, or not at all. */
const SHOWN = new Set(['level', 'time', 'msg', 'server', 'source', 'pid', 'hostname', 'name', 'v', 'err']);

type Entry = Record<string, unknown>;

export async function logs(cli: Cli, server: string | undefined, options: LogOptions): Promise<number> {
  const { output, paths } = cli;
  const file = paths.logFile;
  const wanted = filterOf(server, options.level);
  const show = (line: string): void => output.print(output.json ? line : pretty(output, line));
  const tail = openTail(file);
  const last: string[] = [];
  const count = lineCount(options.lines);
  const keep = (line: string): void => {
    if (!wanted(line)) return;
    last.push(line);
    if (last.length > count) last.shift();
  };
  readOld(`${file}.1`, tail, keep);
  tail.read(keep);
  for (const line of last) show(line);
  if (last.length === 0 && server !== undefined) await mustBeKnown(cli, server);
  if (last.length === 0 && !options.follow)
    output.say(
      existsSync(file) ? 'no such lines in the log' : `there is no log yet at ${file}; start with \`troupe up\``,
    );
  return options.follow ? follow(tail, (line) => wanted(line) && show(line)) : OK;
}

/** A server without any line is an error if the running daemon does not know it. */
async function mustBeKnown({ paths }: Cli, server: string): Promise<void> {
  const servers = (await statusOf(paths))?.servers;
  if (servers?.every(({ name }) => name !== server))
    throw new TroupeError('unknownServer', `there is no server ${server}; troupe ps lists them`);
}

/** Until Ctrl-C. */
async function follow(tail: Tail, onLine: (line: string) => void): Promise<number> {
  for (;;) {
    await sleep(POLL_MS);
    tail.read(onLine);
  }
}

function filterOf(server: string | undefined, level: string | undefined): (line: string) => boolean {
  const least = level === undefined ? 0 : LEVELS[level as keyof typeof LEVELS];
  if (least === undefined) throw usage(`--level wants one of ${Object.keys(LEVELS).join(', ')}, not '${level}'`);
  return (line) => {
    const entry = parse(line);
    // A line that is no JSON comes from a crash: it is hidden only where one server's lines are asked for.
    if (!entry) return server === undefined;
    return (server === undefined || isOf(server, entry.server)) && Number(entry.level ?? 30) >= least;
  };
}

/** A server's lines are also those of its further processes, which are named `server@…`. */
const isOf = (server: string, name: unknown): boolean =>
  name === server || (typeof name === 'string' && name.startsWith(`${server}@`));

function pretty(output: Output, line: string): string {
  const entry = parse(line);
  if (!entry) return printable(line);
  const [name, style] = NAMES[Math.floor(Number(entry.level) / 10) * 10] ?? ['info', 'green'];
  const time = new Date(Number(entry.time));
  const clock = Number.isNaN(time.getTime()) ? '--:--:--' : time.toTimeString().slice(0, 8);
  const who = `${entry.server ?? 'troupe'}${entry.source === 'stderr' ? ' stderr' : ''}`;
  const text = printable(`${entry.msg ?? ''}${trouble(entry.err)}`).trimEnd();
  return [
    output.paint('dim', clock),
    output.paint(style, name.padEnd(5)),
    output.paint('cyan', who),
    text,
    rest(output, entry),
  ]
    .filter(Boolean)
    .join(' ');
}

const trouble = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error ? `: ${error.message}` : '';

function rest(output: Output, entry: Entry): string {
  const pairs = Object.entries(entry)
    .filter(([key, value]) => !SHOWN.has(key) && value !== null && value !== '' && !isSaid(value, entry.msg))
    .map(([key, value]) => (key === 'micros' ? `took=${took(Number(value))}` : `${key}=${textOf(value)}`));
  return pairs.length > 0 ? output.paint('dim', printable(pairs.join(' '))) : '';
}

/** `bus online` need not say `bus=online` too. */
const isSaid = (value: unknown, said: unknown): boolean =>
  typeof value === 'string' && (said === value || String(said).endsWith(` ${value}`));

const textOf = (value: unknown): unknown => (typeof value === 'object' ? JSON.stringify(value) : value);

/** `850µs`, `1.2ms`, `31ms`, `2.5s`. */
function took(micros: number): string {
  if (micros < 1_000) return `${micros}µs`;
  const [count, unit] = micros < 1_000_000 ? [micros / 1_000, 'ms'] : [micros / 1_000_000, 's'];
  return `${count < 10 ? count.toFixed(1) : Math.round(count)}${unit}`;
}

function parse(line: string): Entry | undefined {
  try {
    const entry = JSON.parse(line);
    return typeof entry === 'object' && entry !== null ? entry : undefined;
  } catch {
    return undefined; // shown as it is
  }
}

function lineCount(text: string): number {
  if (!/^\d+$/.test(text)) throw usage(`-n wants a number of lines, not '${text}'`);
  return Number(text);
}

/**
 * A growing file, read line by line across its rotation: the old file is read to its end, then the new one from its
 * beginning. A line is given only when it is whole.
 */
type Tail = {
  /** Gives every whole line that has come since the last call. */
  readonly read: (onLine: (line: string) => void) => void;
  /** The inode of the open file, to tell it from the rotated one. */
  readonly inode: () => number | undefined;
};

const CHUNK = Buffer.alloc(64 * 1024);

export function openTail(path: string): Tail {
  let file = openFile(path);
  return {
    read(onLine) {
      file ??= openFile(path);
      while (file) {
        file.drain(onLine);
        if (isCurrent(path, file.fd, file.position())) return;
        // The file was renamed or truncated. It is read once more, for lines written between the last read and the rename.
        file.drain(onLine);
        closeSync(file.fd);
        file = openFile(path);
      }
    },
    inode: () => (file ? fstatSync(file.fd).ino : undefined),
  };
}

/** The rotated file, unless the rotation happened just now and the tail has it open. */
function readOld(path: string, tail: Tail, onLine: (line: string) => void): void {
  const old = openFile(path);
  if (!old) return;
  if (fstatSync(old.fd).ino !== tail.inode()) old.drain(onLine);
  closeSync(old.fd);
}

function isCurrent(path: string, fd: number, position: number): boolean {
  try {
    return statSync(path).ino === fstatSync(fd).ino && fstatSync(fd).size >= position;
  } catch {
    return true; // between the rename and the new file: keep the old one until the new is there
  }
}

function openFile(path: string) {
  let fd: number;
  try {
    fd = openOwn(path, constants.O_RDONLY);
  } catch (error) {
    if (error instanceof TroupeError) throw error; // it is not the daemon's
    return undefined; // not there yet
  }
  const decoder = new StringDecoder('utf8');
  let position = 0;
  let rest = '';
  const drain = (onLine: (line: string) => void): void => {
    for (let count = readSync(fd, CHUNK, 0, CHUNK.length, position); count > 0; ) {
      position += count;
      const lines = (rest + decoder.write(CHUNK.subarray(0, count))).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') onLine(line);
      count = readSync(fd, CHUNK, 0, CHUNK.length, position);
    }
  };
  return { fd, drain, position: () => position };
}
