// What every verb is given, the exit codes, and where a verb writes: data to stdout, messages to stderr, one JSON object for
// an error under --json. What goes to a terminal, whichever of the two is one, is made printable here and nowhere else.

import { randomUUID } from 'node:crypto';
import { durationOf } from '../config/durations.ts';
import type { Paths } from '../config/paths.ts';
import { FAILURES, type FailureCode, sentence, TroupeError } from '../protocol/failures.ts';
import { printable } from '../telemetry/printable.ts';

/** What every verb is given. It returns an exit code, and throws where it failed. */
export type Cli = {
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly paths: Paths;
};

export const OK = 0;
export const FAILED = 1;
export const TOOL_ERROR = 5;
export const INTERRUPTED = 130;

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export type Output = {
  readonly json: boolean;
  readonly isTerminal: boolean;
  /** Columns a table may use. */
  readonly width: number;
  /** Whether stderr is a terminal, so that a progress bar or a question makes sense. */
  readonly isWatched: boolean;
  /** One line, or more, of data. */
  readonly print: (text: string | Buffer) => void;
  /** One line for the person; says nothing to a program that reads JSON. */
  readonly say: (text: string) => void;
  /** Text on stderr without a newline, for a line that is redrawn; `erase` takes what stands in that line away. */
  readonly draw: (text: string) => void;
  readonly erase: () => void;
  /** A style is a mark in the text until the text is printed, so that no text of others can bring one along. */
  readonly paint: (style: Style, text: string) => string;
  /** The text as a terminal is given it, for those who write to one themselves. */
  readonly rendered: (text: string) => string;
};

type Stream = {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string | Uint8Array) => unknown;
};

const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const satisfies Record<Style, number>;

const ERASE_LINE = '\r\x1b[2K';

/** A program that reads a pipe gets the bytes as they are; each stream is judged by itself. */
export function outputTo(stdout: Stream, stderr: Stream, json: boolean, env: NodeJS.ProcessEnv): Output {
  const isColored = Boolean(stdout.isTTY && stderr.isTTY) && !env.NO_COLOR && env.TERM !== 'dumb';
  const mark = `<${randomUUID()}:`;
  const marks = new RegExp(`${mark}(\\d+)>`);
  const rendered = (text: string): string =>
    text
      .split(marks)
      .map((part, index) => (index % 2 === 0 ? printable(part) : `\x1b[${part}m`))
      .join('');
  const write = (stream: Stream, text: string): void => void stream.write(stream.isTTY ? rendered(text) : text);
  return {
    json,
    isTerminal: Boolean(stdout.isTTY),
    width: Math.max(40, stdout.columns || 80), // a terminal may report 0 columns
    isWatched: Boolean(stderr.isTTY) && !json,
    print(text) {
      if (typeof text === 'string' || stdout.isTTY) write(stdout, text.toString());
      else stdout.write(text);
      if (text.at(-1) !== '\n' && text.at(-1) !== 0x0a) stdout.write('\n');
    },
    say(text) {
      if (!json) write(stderr, `${text}\n`);
    },
    draw: (text) => write(stderr, text),
    erase: () => void stderr.write(ERASE_LINE),
    paint: (style, text) => (isColored ? `${mark}${STYLES[style]}>${text}${mark}0>` : text),
    rendered,
  };
}

export const processOutput = (json: boolean, env: NodeJS.ProcessEnv): Output =>
  outputTo(process.stdout, process.stderr, json, env);

export const usage = (message: string): TroupeError => new TroupeError('invalid', message);

/** The one place where an error becomes words and an exit code. */
export function reportError(error: unknown, json: boolean): number {
  const { code, message } = failureOf(error);
  const text = json ? JSON.stringify({ error: { code, message, ...detailsOf(error) } }) : `troupe: ${message}`;
  process.stderr.write(`${process.stderr.isTTY || !json ? printable(text) : text}\n`);
  return FAILURES[code].exit;
}

function failureOf(error: unknown): { code: FailureCode; message: string } {
  if (error instanceof TroupeError) return { code: error.code, message: error.message };
  return { code: 'internal', message: `${sentence(error)} (this is a fault of troupe: please report it)` };
}

/** For programs: whether the request was sent, and the server's own error object. */
function detailsOf(error: unknown): object {
  const cause = error instanceof TroupeError ? error.cause : undefined;
  return cause instanceof Error || typeof cause !== 'object' || cause === null ? {} : cause;
}

/** `30s`, `500ms`, `2m`, `1h`; a bare number is seconds. */
export function durationMs(text: string, option: string): number {
  const ms = durationOf(text, 's') ?? 0;
  if (!(ms > 0)) throw usage(`${option} wants a time like 500ms, 30s, 2m, 1h or 7d, not '${text}'`);
  return ms;
}
