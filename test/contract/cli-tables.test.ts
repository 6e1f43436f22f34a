// Tables fit the terminal whatever servers call their tools; what they write cannot drive the terminal.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { barText } from '../../src/cli/terminal/progress.ts';
import { ago, bytes, columnsOf, cut, table } from '../../src/cli/terminal/table.ts';
import type { Output } from '../../src/cli/verb.ts';
import { withoutControls } from '../../src/telemetry/printable.ts';

const plain = (width: number): Output => ({
  json: false,
  width,
  isWatched: false,
  isTerminal: true,
  print: () => {},
  say: () => {},
  draw: () => {},
  paint: (_, text) => text,
  rendered: (text) => text,
  erase: () => {},
});
const COLUMNS = [{ title: 'SERVER', elastic: true }, { title: 'STATE' }, { title: 'ABOUT', elastic: true }];

test('columns line up and the elastic ones give way', () => {
  const rows = [
    ['memory', 'ready', 'x'.repeat(100)],
    ['filesystem', 'waiting', 'short'],
  ];
  expect(table(plain(40), COLUMNS, rows).split('\n')).toEqual([
    'SERVER      STATE    ABOUT',
    'memory      ready    xxxxxxxxxxxxxxxxxx…',
    'filesystem  waiting  short',
  ]);
});

test('no row is wider than the terminal, and each is one line', () => {
  const cell = fc.string({ unit: 'grapheme', maxLength: 200 });
  fc.assert(
    fc.property(fc.array(fc.tuple(cell, cell, cell), { maxLength: 8 }), (rows) => {
      const lines = table(plain(80), COLUMNS, rows).split('\n');
      return lines.length === rows.length + 1 && lines.every((line) => columnsOf(line) <= 80);
    }),
  );
});

test('wide characters count as two columns', () => {
  expect(cut('日本語テキスト', 7)).toBe('日本語…');
  expect(cut('日本語', 6)).toBe('日本語');
});

test("a server's escape sequences do not reach the terminal", () => {
  expect(withoutControls('a\x1b]0;title\x07b\n\tc\x9b2J')).toBe('a�]0;title�b\n\tc�2J');
});

test.each([
  [850, '850ms'],
  [12_400, '12s'],
  [185_000, '3m'],
  [7_300_000, '2h'],
  [200_000_000, '2d'],
  [-5, '0ms'],
])('%d ms is written %s', (ms, text) => expect(ago(ms)).toBe(text));

test.each([
  [12, '12 B'],
  [1536, '1.5 kB'],
  [60 * 2 ** 20, '60 MB'],
])('%d bytes are written %s', (count, text) => expect(bytes(count)).toBe(text));

test('a bar shows the part that is done, and only counts when no total is known', () => {
  expect(barText({ progress: 1, total: 4, message: 'step\none' })).toBe(
    `${'█'.repeat(6)}${'░'.repeat(18)}  25 % step one`,
  );
  expect(barText({ progress: 9, total: 4 })).toContain('100 %');
  expect(barText({ progress: 7 })).toBe('… 7');
});
