// How far a call is: a bar on stderr while it runs, drawn only on a terminal and erased when it ends; and a bar in a cell of
// a table. That a call waits for an answer is printed once, also in a pipe: the caller could not know why nothing happens.

import type { Notice } from '../control.ts';
import type { Output } from '../verb.ts';
import { cut, flat } from './table.ts';
import { answerCommand, oneLine } from './words.ts';

const BAR = 24;

type Progress = { readonly onNotice: (notice: Notice) => void; readonly end: () => void };

/** The server that is called, and the daemon that has its questions. */
type Caller = { readonly server: string; readonly instance?: string | undefined };

export function showProgress(output: Output, caller: Caller): Progress {
  let isDrawn = false;
  const known = new Set<unknown>();
  const end = (): void => {
    if (isDrawn) output.erase();
    isDrawn = false;
  };
  const onNotice = ({ method, params }: Notice): void => {
    if (method === 'ask' && !known.has(params.ask)) {
      known.add(params.ask);
      end();
      tell(output, askText(params, caller));
    }
    if (!output.isWatched) return;
    if (method === 'log') {
      end();
      output.say(output.paint('dim', `${params.level ?? 'info'}: ${dataText(params.data)}`));
    } else if (method === 'progress') {
      output.erase();
      output.draw(cut(barText(params), output.width - 1));
      isDrawn = true;
    }
  };
  return { onNotice, end };
}

export function askText({ ask, kind }: Record<string, unknown>, { server, instance }: Caller): string {
  const answer = answerCommand(String(ask), instance);
  return kind === 'approval'
    ? `the call to ${server} waits for approval: ${answer}`
    : `${server} asks a question; answer it with: ${answer}`;
}

/** Under --json stderr holds nothing but JSON, unless it is a terminal. */
function tell(output: Output, text: string): void {
  if (!output.json) output.say(text);
  else if (process.stderr.isTTY) output.draw(`${text}\n`);
}

export function barText(params: Record<string, unknown>): string {
  const { progress, total, message } = params;
  const note = typeof message === 'string' ? ` ${flat(message)}` : '';
  if (typeof progress !== 'number' || typeof total !== 'number' || !(total > 0)) return `… ${progress ?? ''}${note}`;
  const part = Math.min(1, Math.max(0, progress / total));
  const full = Math.round(part * BAR);
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${String(Math.floor(part * 100)).padStart(3)} %${note}`;
}

const dataText = (data: unknown): string => (typeof data === 'string' ? data : JSON.stringify(data ?? ''));

type Done = { readonly progress: number; readonly total?: number; readonly message?: string };

const CELL_BAR = 8;

/** For a cell of a table: `████░░░░ 50 % reading`, or `… 7 reading` where the end is not known. */
export function barCell({ progress, total, message }: Done, width = CELL_BAR): string {
  const note = message ? ` ${oneLine(message)}` : '';
  const part = typeof total === 'number' && total > 0 ? Math.min(1, Math.max(0, progress / total)) : Number.NaN;
  if (Number.isNaN(part)) return `… ${Number(progress)}${note}`;
  const full = Math.floor(part * width);
  return `${'█'.repeat(full)}${'░'.repeat(width - full)} ${Math.floor(part * 100)} %${note}`;
}
