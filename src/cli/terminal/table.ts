// Tables that fit the terminal: columns are as wide as their widest cell. Where there is no room for all, elastic columns give
// way, with an ellipsis; then those go that can be spared. Also the short forms of times and sizes that stand in the cells.

import { printable } from '../../telemetry/printable.ts';
import type { Output, Style } from '../verb.ts';

export type Column = {
  readonly title: string;
  /** Gives way, and how far before columns are left out; beyond that it gives way only when nothing else can. */
  readonly elastic?: boolean;
  readonly least?: number;
  /** May be left out; the one with the highest number goes first. */
  readonly spare?: number;
  readonly right?: boolean;
};
export type Cell = string | { readonly text: string; readonly style: Style };

const GAP = 2;
const SMALLEST = 6;

export function table(output: Output, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  return laidOut(output, columns, rows, (text, width) => [cut(text, width)]);
}

/** A table in which nothing is cut: a cell that has no room in one line goes on below. For what a person must see whole. */
export function wholeTable(output: Output, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  return laidOut(output, columns, rows, fold);
}

function laidOut(
  output: Output,
  all: readonly Column[],
  rows: readonly (readonly Cell[])[],
  into: (text: string, width: number) => string[],
): string {
  const cells = rows.map((row) => row.map((cell) => flat(textOf(cell))));
  const layout = fit(all, cells, output.width);
  const line = (texts: readonly string[], styleOf: (index: number) => Style | undefined): string => {
    const parts = layout.map(({ index, width }) => into(texts[index] ?? '', width));
    return Array.from({ length: Math.max(...parts.map(({ length }) => length)) }, (_, row) =>
      layout
        .map(({ index, width }, at) => {
          const padded = pad(parts[at]?.[row] ?? '', width, all[index]?.right === true);
          const style = styleOf(index);
          return style ? output.paint(style, padded) : padded;
        })
        .join(' '.repeat(GAP))
        .trimEnd(),
    ).join('\n');
  };
  const titles = all.map((column) => column.title);
  return [
    line(titles, () => 'dim'),
    ...cells.map((texts, row) => line(texts, (index) => styleOf(rows[row]?.[index]))),
  ].join('\n');
}

type Placed = { readonly index: number; readonly column: Column; width: number };

/** The columns that are shown, and how wide each is. */
function fit(columns: readonly Column[], cells: readonly (readonly string[])[], width: number): readonly Placed[] {
  const natural = columns.map((column, index) => ({
    index,
    column,
    width: cells.reduce((widest, row) => Math.max(widest, columnsOf(row[index] ?? '')), column.title.length),
  }));
  const spared = columns.map(({ spare = 0 }) => spare).filter(Boolean);
  for (const most of [Number.POSITIVE_INFINITY, ...spared.sort((one, other) => other - one)]) {
    const layout = natural.filter(({ column: { spare = 0 } }) => spare < most).map((placed) => ({ ...placed }));
    if (squeeze(layout, width, ({ elastic, least = SMALLEST }) => (elastic ? least : undefined))) return layout;
  }
  // Not even the columns that cannot be spared have room: now any may give, so that a row never wraps.
  const layout = natural.filter(({ column: { spare } }) => !spare);
  squeeze(layout, width, ({ elastic }) => (elastic ? SMALLEST : undefined));
  squeeze(layout, width, () => SMALLEST);
  return layout;
}

/** The widest column gives first, down to its least; true when the row fits. */
function squeeze(layout: readonly Placed[], width: number, leastOf: (column: Column) => number | undefined): boolean {
  let excess = layout.reduce((sum, placed) => sum + placed.width, GAP * (layout.length - 1)) - width;
  while (excess > 0) {
    const giving = layout.filter((placed) => placed.width > (leastOf(placed.column) ?? Number.POSITIVE_INFINITY));
    const widest = giving.reduce<Placed | undefined>(
      (best, each) => (each.width > (best?.width ?? 0) ? each : best),
      undefined,
    );
    if (!widest) return false;
    widest.width--;
    excess--;
  }
  return true;
}

/** The text in lines of at most `width` columns, broken between words where there are any. */
export function fold(text: string, width: number): string[] {
  const lines: string[] = [];
  for (let rest = text; ; ) {
    const fits = fitting(rest, width);
    if (fits === rest.length) return [...lines, rest];
    const space = rest[fits] === ' ' ? fits : rest.lastIndexOf(' ', fits - 1);
    const taken = space > 0 && rest.slice(0, space).trim() !== '' ? space : Math.max(1, fits);
    lines.push(rest.slice(0, taken).trimEnd());
    rest = rest.slice(taken).trimStart();
  }
}

/** The text in at most `width` columns, with an ellipsis where something was left out. */
export function cut(text: string, width: number): string {
  return fitting(text, width) === text.length ? text : `${text.slice(0, fitting(text, width - 1))}…`;
}

/** How much of the text has room in `width` columns. No more is read than that: the text may be a megabyte long. */
function fitting(text: string, width: number): number {
  let columns = 0;
  let length = 0;
  for (const character of text) {
    columns += columnsOf(character);
    if (columns > width) break;
    length += character.length;
  }
  return length;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Accents and other marks that stand on the character before them. */
const UPON = /[\p{Mn}\p{Me}]/u;

/** Of text that was made printable. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text)
    columns += character < '\u0300' ? 1 : WIDE.test(character) ? 2 : UPON.test(character) ? 0 : 1;
  return columns;
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - columnsOf(text)));
  return right ? space + text : text + space;
}

const textOf = (cell: Cell): string => (typeof cell === 'string' ? cell : cell.text);
const styleOf = (cell: Cell | undefined): Style | undefined => (typeof cell === 'object' ? cell.style : undefined);
/** One line in which everything is seen: a cell holds what a server wrote. */
export const flat = (text: string): string => printable(text).replace(/\s+/g, ' ').trim();

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
