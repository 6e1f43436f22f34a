// Where a verb writes: data to stdout, messages to stderr, one JSON object for an error under --json.
// What a server wrote is shown on a terminal without its control characters, so that it cannot drive the terminal.

import { FAILURES, type FailureCode, sentence, TroupeError } from '../protocol/failures.ts';
import { withoutControls } from '../telemetry/printable.ts';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export type Output = {
  readonly json: boolean;
  /** Columns a table may use. */
  readonly isTerminal: boolean;
  readonly width: number;
  /** Is somebody watching stderr, so that a progress bar or a question makes sense? */
  readonly isWatched: boolean;
  /** One line, or more, of data. */
  readonly print: (text: string | Buffer) => void;
  /** One line for the person; says nothing to a program that reads JSON. */
  readonly say: (text: string) => void;
  /** Raw text on stderr, for what redraws itself. */
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
    width: Math.max(40, stdout.columns || 80), // a terminal of no size is one that does not know it
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

/** What the daemon knows about the request's fate, and the server's own error object, for programs. */
function detailsOf(error: unknown): object {
  const cause = error instanceof TroupeError ? error.cause : undefined;
  return cause instanceof Error || typeof cause !== 'object' || cause === null ? {} : cause;
}
