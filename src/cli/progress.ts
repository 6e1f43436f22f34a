// A bar on stderr while a call runs, drawn only for somebody who watches, and gone when the call ends.

import { withoutControls } from '../telemetry/printable.ts';
import type { Notice } from './control.ts';
import type { Output } from './output.ts';
import { cut, flat } from './table.ts';

const BAR = 24;
const CLEAR = '\r\x1b[2K';

export type Progress = { readonly onNotice: (notice: Notice) => void; readonly end: () => void };

export function showProgress(output: Output): Progress {
  let isDrawn = false;
  const end = (): void => {
    if (isDrawn) output.draw(CLEAR);
    isDrawn = false;
  };
  const onNotice = ({ method, params }: Notice): void => {
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

export function barText(params: Record<string, unknown>): string {
  const { progress, total, message } = params;
  const note = typeof message === 'string' ? ` ${flat(message)}` : '';
  if (typeof progress !== 'number' || typeof total !== 'number' || !(total > 0)) return `… ${progress ?? ''}${note}`;
  const part = Math.min(1, Math.max(0, progress / total));
  const full = Math.round(part * BAR);
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${String(Math.floor(part * 100)).padStart(3)} %${note}`;
}

const dataText = (data: unknown): string => (typeof data === 'string' ? data : JSON.stringify(data ?? ''));
