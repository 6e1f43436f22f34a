// The file that log lines go to, written behind and of bounded size. A disk that refuses them stops nobody: lines wait,
// within a bound, until it takes them again, and how many were lost meanwhile is a line of its own.

import { closeSync, openSync, renameSync, statSync, write, writeSync } from 'node:fs';

export type Sink = { write(line: string): void; close(): void };

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_WAITING = 4 * 1024 * 1024;
const ENOUGH = 65_536;
const FLUSH_MS = 200;
const ROTATE_MS = 5_000;

export function openSink(file: string): Sink {
  rotate(file);
  let descriptor = openSync(file, 'a', 0o600);
  let waiting: (string | Buffer)[] = [];
  let length = 0;
  let lost = 0;
  let isWriting = false;
  let isRefused = false; // by the disk: only the clock tries again, not every line
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
    const bytes = Buffer.concat(waiting.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
    waiting = [];
    length = 0;
    return bytes;
  }

  function putBack(bytes: Buffer): void {
    waiting.unshift(bytes);
    length += bytes.length;
  }

  /** A file that was put aside must not be written to any longer. */
  function reopen(): void {
    if (isWriting || !rotate(file)) return;
    try {
      const next = openSync(file, 'a', 0o600);
      closeSync(descriptor);
      descriptor = next;
    } catch {} // no room for a new one: the old one goes on
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

/** Keeps one older file. True when the current one was put aside. */
function rotate(file: string): boolean {
  try {
    if (statSync(file).size < MAX_BYTES) return false;
    renameSync(file, `${file}.1`);
    return true;
  } catch {
    return false; // there is no log yet
  }
}
