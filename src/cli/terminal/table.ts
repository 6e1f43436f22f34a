// Tables that fit the terminal: columns are as wide as their widest cell, and the elastic ones give way, with an
// ellipsis, until the row fits. Also the short forms of times and sizes that stand in the cells.

import type { Output, Style } from '../verb.ts';

export type Column = { readonly title: string; readonly elastic?: boolean; readonly right?: boolean };
export type Cell = string | { readonly text: string; readonly style: Style };

const GAP = 2;
const SMALLEST = 6;

export function table(output: Output, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const cells = rows.map((row) => row.map((cell) => flat(textOf(cell))));
  const widths = fit(columns, cells, output.width);
  const line = (texts: readonly string[], styleOf: (index: number) => Style | undefined): string =>
    texts
      .map((text, index) => {
        const padded = pad(cut(text, widths[index] ?? 0), widths[index] ?? 0, columns[index]?.right === true);
        const style = styleOf(index);
        return style ? output.paint(style, padded) : padded;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  const titles = columns.map((column) => column.title);
  return [
    line(titles, () => 'dim'),
    ...cells.map((texts, row) => line(texts, (index) => styleOf(rows[row]?.[index]))),
  ].join('\n');
}

function fit(columns: readonly Column[], cells: readonly (readonly string[])[], width: number): number[] {
  const widths = columns.map((column, index) =>
    cells.reduce((widest, row) => Math.max(widest, columnsOf(row[index] ?? '')), column.title.length),
  );
  let excess = widths.reduce((sum, each) => sum + each, GAP * (widths.length - 1)) - width;
  // The widest elastic column gives first; if none can, any column does, so that a row never wraps.
  for (const mayGive of [(index: number) => columns[index]?.elastic === true, () => true]) {
    while (excess > 0) {
      const widest = widths.reduce((best, each, i) => (mayGive(i) && each > (widths[best] ?? 0) ? i : best), -1);
      if (widest < 0 || (widths[widest] ?? 0) <= SMALLEST) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      excess--;
    }
  }
  return widths;
}

/** The text in at most `width` columns, with an ellipsis where something was left out. */
export function cut(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  let used = 0;
  let shown = '';
  for (const character of text) {
    used += columnsOf(character);
    if (used > width - 1) break;
    shown += character;
  }
  return `${shown}…`;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += WIDE.test(character) ? 2 : 1;
  return columns;
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - columnsOf(text)));
  return right ? space + text : text + space;
}

const textOf = (cell: Cell): string => (typeof cell === 'string' ? cell : cell.text);
const styleOf = (cell: Cell | undefined): Style | undefined => (typeof cell === 'object' ? cell.style : undefined);
/** One line, no control characters: a cell holds what a server wrote. */
export const flat = (text: string): string => text.replace(/[\p{Cc}\s]+/gu, ' ').trim();

/** `850ms`, `12s`, `3m`, `5h`, `2d`. */
export function ago(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const steps = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
  ] as const;
  for (const [size, unit] of steps) if (ms >= size) return `${Math.floor(ms / size)}${unit}`;
  return `${Math.floor(ms / 1000)}s`;
}

export function bytes(count: number): string {
  const steps = [
    [2 ** 30, 'GB'],
    [2 ** 20, 'MB'],
    [2 ** 10, 'kB'],
  ] as const;
  for (const [size, unit] of steps)
    if (count >= size) return `${(count / size).toFixed(count < size * 10 ? 1 : 0)} ${unit}`;
  return `${count} B`;
}
