// What `-f` shows until Ctrl-C. On a terminal it is a few lines that are redrawn in place: written over, never erased first,
// so that nothing flickers; the cursor is hidden meanwhile and shown again at every end.

import { constants } from 'node:os';
import { TroupeError } from '../../protocol/failures.ts';
import type { Control } from '../control.ts';
import { OK, type Output } from '../verb.ts';

/** Something that is shown anew at each change, on a screen or line by line. */
export type Show<Change> = { readonly update: (change: Change) => void; readonly end: () => void };

export const isRedrawn = (output: Output): boolean => output.isTerminal && !output.json && process.env.TERM !== 'dumb';

/** Shows each change until Ctrl-C, which closes the control socket and is no failure. */
export async function follow<Change>(
  control: Control,
  show: Show<Change>,
  changes: (signal: AbortSignal) => AsyncIterable<Change>,
): Promise<number> {
  const leaving = new AbortController();
  const stop = (): void => {
    leaving.abort();
    control.close();
  };
  process.on('SIGINT', stop);
  try {
    for await (const change of changes(leaving.signal)) show.update(change);
    return OK;
  } catch (error) {
    if (leaving.signal.aborted) return OK;
    if (error instanceof TroupeError && error.code === 'lost')
      throw new TroupeError('unavailable', 'troupe has stopped; start it with `troupe up`, and follow again');
    throw error;
  } finally {
    process.off('SIGINT', stop);
    show.end();
  }
}

export type Screen = { readonly draw: () => void; readonly end: () => void };

const HIDE = '\x1b[?25l';
const SHOW = '\x1b[?25h';
/** A line that is too wide is cut by the terminal: one that wraps would move all others. */
const [NO_WRAP, WRAP] = ['\x1b[?7l', '\x1b[?7h'];
const LINE_END = '\x1b[K\n';
const BELOW = '\x1b[J';
const AFRESH = '\x1b[H\x1b[2J';
const TICK_MS = 1_000;

/** `text` gives the lines for so many columns, at most `height` of them. */
export function openScreen({ rendered }: Output, text: (width: number, height: number) => readonly string[]): Screen {
  const { stdout } = process;
  let shown: readonly string[] = [];
  let isOver = false;

  function draw(from = shown.length > 0 ? `\x1b[${shown.length}A\r` : ''): void {
    const lines = text(stdout.columns || 80, Math.max(2, (stdout.rows || 24) - 1)).map(rendered);
    if (lines.join('\n') === shown.join('\n')) return;
    stdout.write(`${HIDE}${NO_WRAP}${from}${lines.map((line) => line + LINE_END).join('')}${BELOW}${WRAP}`);
    shown = lines;
  }
  // Lines that were drawn for another width may have wrapped, so that their place is not known any more.
  const resized = (): void => {
    shown = [];
    draw(AFRESH);
  };
  // Ctrl-Z gives the cursor back to the shell; `fg` draws the lines anew.
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
    ['SIGTSTP', suspend],
    ['SIGCONT', resume],
    ['SIGTERM', die],
    ['SIGHUP', die],
    ['exit', end],
  ] as const;
  for (const [event, listener] of listeners) process.on(event, listener);
  stdout.on('resize', resized);
  const timer = setInterval(() => draw(), TICK_MS);
  return { draw: () => draw(), end };
}
