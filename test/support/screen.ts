// What a person sees of a terminal of so many columns and rows after all that was written: lines wrap, the window scrolls, and
// the cursor goes where it is told. As much of a VT100 as what we draw needs; anything else it is told is an error.

export type Seen = {
  /** The lines of the window, without the space at their ends. */
  readonly lines: readonly string[];
  readonly isCursorShown: boolean;
  readonly isWrapping: boolean;
  /** How often something that was written reached the last column and went on below. */
  readonly wraps: number;
};

export function screenOf(raw: string, columns: number, rows: number): Seen {
  const grid: string[][] = [[]];
  const modes = { 25: true, 7: true };
  let [row, column, wraps] = [0, 0, 0];
  const lineAt = (at: number): string[] => (grid[at] ??= []);
  const down = (): void => {
    if (row === rows - 1) grid.shift();
    else row++;
    lineAt(row);
  };
  const put = (character: string): void => {
    if (column >= columns && modes[7]) {
      [column, wraps] = [0, wraps + 1];
      down();
    }
    const at = Math.min(column, columns - 1);
    const line = lineAt(row);
    while (line.length < at) line.push(' ');
    line[at] = character;
    column = at + 1;
  };
  const command = (parameters: string, final: string): void => {
    const count = Number(parameters) || 1;
    if (final === 'm') return;
    if (final === 'A') row = Math.max(0, row - count);
    else if (final === 'H' && parameters === '') [row, column] = [0, 0];
    else if (final === 'K' && parameters === '') lineAt(row).length = Math.min(lineAt(row).length, column);
    else if (final === 'J' && parameters === '2') grid.splice(0, grid.length, ...grid.map(() => []));
    else if (final === 'J' && parameters === '') {
      lineAt(row).length = Math.min(lineAt(row).length, column);
      grid.splice(row + 1);
    } else if (/^\?(25|7)$/.test(parameters) && /[hl]/.test(final))
      modes[parameters.slice(1) as '25' | '7'] = final === 'h';
    else throw new Error(`the screen does not know ESC[${parameters}${final}`);
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a terminal is about
  for (const [token, parameters, final] of raw.matchAll(/\x1b\[([0-9;?]*)([A-Za-z])|[\s\S]/gu)) {
    if (final !== undefined) command(parameters ?? '', final);
    else if (token === '\r') column = 0;
    else if (token === '\n') down();
    else if (token >= ' ') put(token);
  }
  const lines = grid.map((line) => line.join('').trimEnd());
  return { lines, isCursorShown: modes[25], isWrapping: modes[7], wraps };
}
