// What every verb is given, the exit codes, and where a verb writes: data to stdout, messages to stderr, one JSON object for
// an error under --json. Text of a server is shown on a terminal without its control characters.

import { durationOf } from '../config/durations.ts';
import type { Paths } from '../config/paths.ts';
import { FAILURES, type FailureCode, sentence, TroupeError } from '../protocol/failures.ts';
import { withoutControls } from '../telemetry/printable.ts';

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
  /** Raw text on stderr, for lines that are redrawn. */
  readonly draw: (text: string) => void;
  readonly paint: (style: Style, text: string) => string;
  /** Text of a server or a file, made safe for where it goes. */
  readonly safe: (text: string) => string;
};

const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const satisfies Record<Style, number>;

export function processOutput(json: boolean, env: NodeJS.ProcessEnv): Output {
  const { stdout, stderr } = process;
  const isColored = Boolean(stdout.isTTY && stderr.isTTY) && !env.NO_COLOR && env.TERM !== 'dumb';
  return {
    json,
    isTerminal: Boolean(stdout.isTTY),
    width: Math.max(40, stdout.columns || 80), // a terminal may report 0 columns
    isWatched: Boolean(stderr.isTTY) && !json,
    print(text) {
      stdout.write(text);
      if (text.at(-1) !== '\n' && text.at(-1) !== 0x0a) stdout.write('\n');
    },
    say(text) {
      if (!json) stderr.write(`${text}\n`);
    },
    draw: (text) => void stderr.write(text),
    paint: (style, text) => (isColored ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text),
    safe: (text) => (stdout.isTTY ? withoutControls(text) : text),
  };
}

export const usage = (message: string): TroupeError => new TroupeError('invalid', message);

/** The one place where an error becomes words and an exit code. */
export function reportError(error: unknown, json: boolean): number {
  const { code, message } = failureOf(error);
  const text = json
    ? JSON.stringify({ error: { code, message, ...detailsOf(error) } })
    : `troupe: ${withoutControls(message)}`;
  process.stderr.write(`${text}\n`);
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
