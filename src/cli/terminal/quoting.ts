// Words as a shell would have to be given them, so that it is seen where one ends and the next begins.

import { printable } from '../../telemetry/printable.ts';

/** Bare where a shell needs no quotes. */
export const quotedWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** A command line that reads as one thing only; in the words that hold what is not seen, it is spelt out. */
export const commandText = (argv: readonly string[]): string => argv.map(spelt).join(' ');

function spelt(word: string): string {
  if (printable(word) === word && !/[\n\t]/.test(word)) return quotedWord(word);
  const body = word.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
  const lines = body.replaceAll('\r', '\\r').replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  return `$'${printable(lines)}'`;
}
