// The statements of a TOML file and where they stand: headers and pairs, with their keys; values are only skipped.
// Made for editing files of others, whose formatting and comments must survive; it is no parser of TOML.

export type Statement = {
  /** From the beginning of its line to the end of its last one, newline included. */
  readonly from: number;
  readonly to: number;
  readonly line: number;
  /** The table it opens, or stands in. */
  readonly table: readonly string[];
  readonly isHeader: boolean;
  /** A header in double brackets. */
  readonly isArray: boolean;
  /** Of a pair, relative to its table. */
  readonly key: readonly string[];
};
type Broken = { readonly line: number; readonly why: string };

const BLANK = /[ \t]*/y;
const NOTHING = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y;
const KEY_PART = /[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*/y;

export function statementsOf(text: string): { readonly statements: Statement[] } | Broken {
  const statements: Statement[] = [];
  let table: readonly string[] = [];
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  while (at < text.length) {
    const from = at;
    const empty = end(NOTHING, text, at);
    if (empty !== undefined) {
      if (empty === at) break;
      at = empty;
      continue;
    }
    at = end(BLANK, text, at) ?? at;
    const line = lineAt(text, at);
    const isHeader = text[at] === '[';
    const isArray = text.startsWith('[[', at);
    const head = keysOf(text, at + (isHeader ? 1 : 0) + (isArray ? 1 : 0));
    if (!head) return { line, why: 'this is no key' };
    const closing = isArray ? ']]' : isHeader ? ']' : '=';
    if (!text.startsWith(closing, head.to)) return { line, why: `a ${closing} is missing here` };
    const valueFrom = head.to + closing.length;
    const valueTo = isHeader ? valueFrom : valueEnd(text, valueFrom);
    const to = valueTo === undefined ? undefined : end(NOTHING, text, valueTo);
    if (to === undefined) return { line, why: isHeader ? 'something follows the header' : 'the value is not complete' };
    if (isHeader) table = head.keys;
    statements.push({ from, to, line, table, isHeader, isArray, key: isHeader ? [] : head.keys });
    at = to;
  }
  return { statements };
}

function keysOf(text: string, from: number): { keys: string[]; to: number } | undefined {
  const keys: string[] = [];
  for (let at = from; ; at += 1) {
    KEY_PART.lastIndex = at;
    const [part, bare, basic, literal] = KEY_PART.exec(text) ?? [];
    if (part === undefined) return undefined;
    keys.push(bare ?? literal ?? basic ?? '');
    at += part.length;
    if (text[at] !== '.') return { keys, to: at };
  }
}

const QUOTES = ['"""', "'''", '"', "'"];

/** The end of the value that begins here; undefined if there is none, or it has none. */
function valueEnd(text: string, from: number): number | undefined {
  const start = end(BLANK, text, from) ?? from;
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const quote = QUOTES.find((each) => text.startsWith(each, at));
    const character = text[at] ?? '';
    if (quote) {
      const after = stringEnd(text, at, quote);
      if (after === undefined) return undefined;
      at = after;
      continue;
    }
    if (depth === 0 && (character === '\n' || character === '#')) break;
    if (character === '#') at = lineEnd(text, at);
    if (character === '[' || character === '{') depth += 1;
    if (character === ']' || character === '}') depth -= 1;
    if (depth < 0) return undefined;
    at += 1;
  }
  const to = start + text.slice(start, at).trimEnd().length;
  return depth === 0 && to > start ? to : undefined;
}

function stringEnd(text: string, from: number, quote: string): number | undefined {
  const isEscaping = quote[0] === '"';
  for (let at = from + quote.length; at < text.length; at++) {
    if (isEscaping && text[at] === '\\') at += 1;
    else if (text.startsWith(quote, at)) {
      let after = at + quote.length;
      // A multi-line string may end in quotes of its own.
      while (quote.length === 3 && text[after] === quote[0] && after < at + 5) after += 1;
      return after;
    } else if (quote.length === 1 && text[at] === '\n') return undefined;
  }
  return undefined;
}

function lineEnd(text: string, at: number): number {
  const found = text.indexOf('\n', at);
  return found < 0 ? text.length : found;
}

const lineAt = (text: string, at: number): number => text.slice(0, at).split('\n').length;

/** Where a match that begins exactly here ends. */
function end(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
