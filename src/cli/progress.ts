// A bar on stderr while a call runs, drawn only for somebody who watches, and gone when the call ends. That the call waits
// for an answer is said to everybody, once: whoever does not know it would wait for nothing.

import { withoutControls } from '../telemetry/printable.ts';
import { answerCommand } from './answer-words.ts';
import type { Notice } from './control.ts';
import type { Output } from './output.ts';
import { cut, flat } from './table.ts';

const BAR = 24;
const CLEAR = '\r\x1b[2K';

export type Progress = { readonly onNotice: (notice: Notice) => void; readonly end: () => void };

/** Whose call it is, and which daemon has its questions. */
export type Caller = { readonly server: string; readonly instance?: string | undefined };

export function showProgress(output: Output, caller: Caller): Progress {
  let isDrawn = false;
  const known = new Set<unknown>();
  const end = (): void => {
    if (isDrawn) output.draw(CLEAR);
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
      output.say(output.paint('dim', withoutControls(`${params.level ?? 'info'}: ${dataText(params.data)}`)));
    } else if (method === 'progress') {
      output.draw(CLEAR + cut(barText(params), output.width - 1));
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

/** A program that reads JSON finds nothing but JSON on stderr; a person who watches is told all the same. */
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
