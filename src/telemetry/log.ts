// The daemon's log: one JSON line an event, in a file of bounded size. Servers' stderr and MCP log messages go there too,
// so that one place tells what happened. Whatever a plugin masks is masked before a line is written.

import { mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pino, { type Logger } from 'pino';

export type Log = {
  readonly logger: Logger;
  readonly file: string;
  /** Text in log lines and audit rows passes through every mask. */
  readonly mask: (text: string) => string;
  addMask(mask: (text: string) => string): () => void;
  close(): void;
};

const MAX_BYTES = 16 * 1024 * 1024;
const FLUSH_MS = 200;
const ROTATE_MS = 5_000;

export function openLog(directory: string, level: string): Log {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, 'troupe.log');
  rotate(file);
  const destination = pino.destination({ dest: file, sync: false, minLength: 4096, mode: 0o600 });
  const masks = new Set<(text: string) => string>();
  const mask = (text: string): string => {
    let masked = text;
    for (const next of masks) masked = next(masked);
    return masked;
  };
  const hooks = { streamWrite: (line: string) => (masks.size === 0 ? line : mask(line)) };
  const logger = pino({ level, base: null, hooks }, destination);
  const flusher = setInterval(() => destination.flush(), FLUSH_MS);
  const rotator = setInterval(() => rotate(file) && destination.reopen(), ROTATE_MS);
  flusher.unref();
  rotator.unref();

  return {
    logger,
    file,
    mask,
    addMask(added) {
      masks.add(added);
      return () => masks.delete(added);
    },
    close() {
      clearInterval(flusher);
      clearInterval(rotator);
      try {
        destination.flushSync();
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
