// The daemon's log: one JSON line an event, in a file of bounded size. Servers' stderr and MCP log messages go there too,
// so that one place tells what happened. Whatever a plugin masks is masked before a line is written.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pino, { type Logger } from 'pino';
import { openSink } from './sink.ts';

export type Log = {
  readonly logger: Logger;
  readonly file: string;
  /** Text in log lines and audit rows passes through every mask. */
  readonly mask: (text: string) => string;
  addMask(mask: (text: string) => string): () => void;
  close(): void;
};

export function openLog(directory: string, level: string, name = 'troupe.log'): Log {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, name);
  // Not pino's own: on a full disk its errors end the process, and its last flush never ends.
  const sink = openSink(file);
  const masks = new Set<(text: string) => string>();
  const mask = (text: string): string => {
    if (masks.size === 0) return text; // on the way of every call
    let covered = text;
    for (const next of masks) covered = next(covered);
    return covered;
  };
  const hooks = { streamWrite: (line: string) => (masks.size === 0 ? line : masked(line, mask)) };
  const logger = pino({ level, base: null, hooks }, sink);

  return {
    logger,
    file,
    mask,
    addMask(added) {
      masks.add(added);
      return () => masks.delete(added);
    },
    close: sink.close,
  };
}

/** Texts are masked, not the line they stand in: a mask must not break the line, nor miss what JSON writes differently. */
function masked(line: string, mask: (text: string) => string): string {
  const cover = (_: string, value: unknown) => (typeof value === 'string' ? mask(value) : value);
  return `${JSON.stringify(JSON.parse(line), cover)}\n`;
}
