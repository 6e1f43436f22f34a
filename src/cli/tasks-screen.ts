// A few lines of the terminal that are drawn again where they stand. They are written over, never erased first, so that nothing
// flickers; the cursor is away meanwhile and back at the end, whatever the end is.

import { constants } from 'node:os';

export type Screen = { readonly draw: () => void; readonly end: () => void };

const HIDE = '\x1b[?25l';
const SHOW = '\x1b[?25h';
/** A line that is wider than we think is cut by the terminal: one that wraps would move all others. */
const [NO_WRAP, WRAP] = ['\x1b[?7l', '\x1b[?7h'];
const LINE_END = '\x1b[K\n';
const BELOW = '\x1b[J';
const AFRESH = '\x1b[H\x1b[2J';
const TICK_MS = 1_000;

/** `text` gives the lines for so many columns, at most `height` of them. */
export function openScreen(text: (width: number, height: number) => readonly string[]): Screen {
  const { stdout } = process;
  let shown: readonly string[] = [];
  let isOver = false;

  function draw(from = shown.length > 0 ? `\x1b[${shown.length}A\r` : ''): void {
    const lines = text(stdout.columns || 80, Math.max(2, (stdout.rows || 24) - 1));
    if (lines.join('\n') === shown.join('\n')) return;
    stdout.write(`${HIDE}${NO_WRAP}${from}${lines.map((line) => line + LINE_END).join('')}${BELOW}${WRAP}`);
    shown = lines;
  }
  // What was drawn for another width has wrapped, and nobody knows where it begins.
  const resized = (): void => {
    shown = [];
    draw(AFRESH);
  };
  // Whoever looks at something else in between gets the cursor, and a new table when they are back.
  const suspend = (): void => {
    stdout.write(SHOW);
    process.kill(process.pid, 'SIGSTOP');
  };
  const resume = (): void => {
    shown = [];
    draw();
  };
  const die = (signal: NodeJS.Signals): never => process.exit(128 + constants.signals[signal]);
  const end = (): void => {
    if (!isOver) stdout.write(SHOW);
    isOver = true;
    clearInterval(timer);
    stdout.off('resize', resized);
    for (const [event, listener] of listeners) process.off(event, listener);
  };

  const listeners = [
    ...[['SIGTSTP', suspend] as const, ['SIGCONT', resume] as const],
    ...[['SIGTERM', die] as const, ['SIGHUP', die] as const, ['exit', end] as const],
  ] as const;
  for (const [event, listener] of listeners) process.on(event, listener);
  stdout.on('resize', resized);
  const timer = setInterval(() => draw(), TICK_MS);
  return { draw: () => draw(), end };
}
