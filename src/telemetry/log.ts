// The daemon's log: one JSON line for each event, in a file of bounded size. Servers' stderr and MCP log messages go there too,
// so that one file tells what happened. Secrets are masked in it, and plugins may mask more, before a line is written.

import { closeSync, constants, existsSync, lstatSync, renameSync, write, writeSync } from 'node:fs';
import { join } from 'node:path';
import pino, { type Logger } from 'pino';
import { openOwn, ownDirectory } from '../files/own.ts';
import { createSecrets, type Secrets } from './secrets.ts';

export type Log = {
  readonly logger: Logger;
  readonly file: string;
  /** What is known to be secret. */
  readonly secrets: Secrets;
  /** Text in log lines and audit rows passes through every mask, and is without secrets. */
  readonly mask: (text: string) => string;
  addMask(mask: (text: string) => string): () => void;
  close(): void;
};

export function openLog(directory: string, level: string, name = 'troupe.log'): Log {
  ownDirectory(directory);
  const file = join(directory, name);
  // Not pino's own: on a full disk its errors end the process, and its last flush never ends.
  const secrets = createSecrets();
  // When lines are written, and not when they are said: a call does not wait for it.
  const sink = openSink(file, (line) => (secrets.mayBeIn(line) ? masked(line, secrets.mask) : line));
  const masks = new Set<(text: string) => string>();
  const mask = (text: string): string => {
    let covered = secrets.mask(text);
    for (const next of masks) covered = next(covered);
    return covered;
  };
  const hooks = { streamWrite: (line: string) => (masks.size === 0 ? line : masked(line, mask)) };
  const logger = pino({ level, base: null, hooks }, sink);

  return {
    logger,
    file,
    secrets,
    mask,
    addMask(added) {
      masks.add(added);
      return () => masks.delete(added);
    },
    close: sink.close,
  };
}

/** Each string of the line is masked, not the line itself: a mask must not break the JSON, nor miss text that JSON escapes. */
function masked(line: string, mask: (text: string) => string): string {
  const cover = (_: string, value: unknown) => (typeof value === 'string' ? mask(value) : value);
  return `${JSON.stringify(JSON.parse(line), cover)}\n`;
}

// ── The file: written behind. A full disk stops nothing: lines wait, within a bound, and how many were lost is a line too ──

type Sink = { write(line: string): void; close(): void };

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_WAITING = 4 * 1024 * 1024;
const ENOUGH = 65_536;
const FLUSH_MS = 200;
const ROTATE_MS = 5_000;

function openSink(file: string, cover: (line: string) => string): Sink {
  rotate(file);
  let descriptor = openOwn(file, APPEND);
  let waiting: (string | Buffer)[] = [];
  let length = 0;
  let lost = 0;
  let isWriting = false;
  let isRefused = false; // by the disk: the timer tries again, not every line
  const flusher = setInterval(flush, FLUSH_MS);
  const rotator = setInterval(reopen, ROTATE_MS);
  flusher.unref();
  rotator.unref();

  function flush(): void {
    if (isWriting || waiting.length === 0) return;
    const bytes = take();
    isWriting = true;
    write(descriptor, bytes, (error, written) => {
      isWriting = false;
      isRefused = error !== null;
      if (error || written < bytes.length) putBack(bytes.subarray(error ? 0 : written));
      else if (length >= ENOUGH) flush();
    });
  }

  function take(): Buffer {
    const bytes = Buffer.concat(waiting.map((part) => (typeof part === 'string' ? Buffer.from(cover(part)) : part)));
    waiting = [];
    length = 0;
    return bytes;
  }

  function putBack(bytes: Buffer): void {
    waiting.unshift(bytes);
    length += bytes.length;
  }

  /** A new file takes the place of one that was put aside, by us or by somebody else. */
  function reopen(): void {
    if (isWriting || (!rotate(file) && existsSync(file))) return;
    try {
      const next = openOwn(file, APPEND);
      closeSync(descriptor);
      descriptor = next;
    } catch {} // no room for a new file now: the old one is written to until there is
  }

  return {
    write(line) {
      if (length + line.length > MAX_WAITING) {
        lost++;
        return;
      }
      if (lost > 0) {
        waiting.push(
          `{"level":40,"time":${Date.now()},"msg":"${lost} lines were lost, the log could not be written"}\n`,
        );
        lost = 0;
      }
      waiting.push(line);
      length += line.length;
      if (length >= ENOUGH && !isRefused) flush();
    },
    close() {
      clearInterval(flusher);
      clearInterval(rotator);
      try {
        if (waiting.length > 0) writeSync(descriptor, take());
      } catch {} // the disk is full or gone: there is nowhere left to say so
    },
  };
}

/** Puts a file aside that has grown too long, in place of an older one. True when it did. */
function rotate(file: string): boolean {
  try {
    if (lstatSync(file).size < MAX_BYTES) return false;
    renameSync(file, `${file}.1`);
    return true;
  } catch {
    return false; // there is no log yet
  }
}
