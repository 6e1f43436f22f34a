// A real terminal of 80 columns: `script` gives a command a pty on every Linux and on macOS. What it draws is kept on a small
// screen of our own, so that tests look at what a person would see and not at the escape sequences.

import { spawn } from 'node:child_process';
import { eventually } from './eventually.ts';

export type Terminal = AsyncDisposable & {
  /** Everything that was ever written, lines and sequences. */
  readonly raw: () => string;
  /** What was written, as lines without escape sequences. */
  readonly screen: () => string;
  /** Types; `\r` is the Enter key and `\x03` Ctrl-C. */
  readonly type: (keys: string) => void;
  /** Resolves when the text stands on the screen after everything that was waited for before. */
  readonly sees: (text: string | RegExp) => Promise<void>;
  /** The exit code of the command. */
  readonly code: Promise<number | null>;
};

export type TerminalOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
};

export function terminal(words: readonly string[], { env, cwd, columns = 80, rows = 40 }: TerminalOptions): Terminal {
  const command = `stty cols ${columns} rows ${rows}; exec ${words.map(quoted).join(' ')}`;
  // util-linux takes the command as an option, the one of BSD as its last words.
  const args =
    process.platform === 'linux'
      ? ['-qefc', command, '/dev/null']
      : ['-q', '-e', '/dev/null', '/bin/sh', '-c', command];
  const child = spawn('script', args, {
    env: { SHELL: '/bin/sh', TERM: 'xterm-256color', ...env },
    cwd,
    detached: true,
  });
  let raw = '';
  let from = 0;
  child.stdout.setEncoding('utf8').on('data', (text) => (raw += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (raw += text));
  child.stdin.on('error', () => {}); // it ended while we typed
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const screen = () => drawn(raw);
  return {
    raw: () => raw,
    screen,
    code,
    type: (keys) => void child.stdin.write(keys),
    async sees(text) {
      const pattern = typeof text === 'string' ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : text;
      await eventually(() => {
        const rest = screen().slice(from);
        const found = pattern.exec(rest);
        if (!found) throw new Error(`${pattern} is not on the screen:\n${rest}`);
        from += found.index + found[0].length;
      }, 20_000);
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.pid) process.kill(-child.pid, 'SIGKILL');
      await code;
    },
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** A terminal as far as a line editor needs one: it goes left and right in a line, and erases. Lines above stay as they are. */
function drawn(raw: string): string {
  const lines: string[] = [];
  let line = '';
  let column = 0;
  const put = (character: string): void => {
    line = line.slice(0, column).padEnd(column) + character + line.slice(column + 1);
    column++;
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a terminal is about
  for (const [token] of raw.matchAll(/\x1b\[[0-9;?]*[A-Za-z]|\x1b[^[]|[\s\S]/gu)) {
    const [, count = '', final] = /^.\[([0-9;?]*)([A-Za-z])$/.exec(token) ?? [];
    if (token === '\r') column = 0;
    else if (token === '\n') {
      lines.push(line);
      [line, column] = ['', 0];
    } else if (token === '\b') column = Math.max(0, column - 1);
    else if (final === 'G') column = Number(count || 1) - 1;
    else if (final === 'C') column += Number(count || 1);
    else if (final === 'D') column = Math.max(0, column - Number(count || 1));
    else if (final === 'K' || final === 'J') line = count === '2' ? '' : line.slice(0, column);
    else if (!token.startsWith('\x1b') && token >= ' ') put(token);
  }
  return [...lines, line].join('\n');
}

/** Waits for each text, then types the line that stands beside it; a control character is typed as it is. */
export async function talk(
  screen: Terminal,
  ...steps: readonly (readonly [string | RegExp, string?])[]
): Promise<void> {
  for (const [text, keys] of steps) {
    await screen.sees(text);
    if (keys !== undefined) screen.type(/^\p{Cc}$/u.test(keys) ? keys : `${keys}\r`);
  }
}
