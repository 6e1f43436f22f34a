// How far something is, in one cell of a table: a bar where the end is known, a count where it is not.

import { oneLine } from './answer-words.ts';

export type Done = { readonly progress: number; readonly total?: number; readonly message?: string };

const WIDTH = 8;

/** `████░░░░ 50 % reading`, or `… 7 reading`. */
export function barCell({ progress, total, message }: Done, width = WIDTH): string {
  const note = message ? ` ${oneLine(message)}` : '';
  const part = typeof total === 'number' && total > 0 ? Math.min(1, Math.max(0, progress / total)) : Number.NaN;
  if (Number.isNaN(part)) return `… ${Number(progress)}${note}`;
  const full = Math.floor(part * width);
  return `${'█'.repeat(full)}${'░'.repeat(width - full)} ${Math.floor(part * 100)} %${note}`;
}
