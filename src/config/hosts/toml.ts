// Puts one table into a TOML file, or brings the one that is there up to date; every other byte stays. Enough of TOML is
// read to know where each statement begins and ends; a file that cannot be read so far, or says the same in another
// way, is not touched.

import { TroupeError } from '../../protocol/failures.ts';

type Table = {
  readonly path: string;
  readonly text: string;
  readonly table: readonly [string, string];
  readonly values: Readonly<Record<string, unknown>>;
};

/** The keys that say how a server is reached: troupe writes all of them anew. */
const OUR_KEYS = ['command', 'args', 'env', 'url', 'bearer_token_env_var', 'http_headers', 'env_http_headers'];

export function withTable({ path, text, table, values }: Table): string {
  const read = statementsOf(text);
  if ('line' in read)
    throw new TroupeError('invalid', `${path}:${read.line}: ${read.why}; mend the file first, nothing was changed`);
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = Object.entries(values).map(([key, value]) => `${key} = ${written(value)}`);
  const [header, ...rest] = read.statements.filter(({ table: at }) => isSame(at, table));
  refuseOtherForms(path, table, read.statements);
  if (!header) return appended(text, [`[${table.map(keyText).join('.')}]`, ...lines], ending);
  const ours = rest.filter(({ key }) => OUR_KEYS.includes(key[0] ?? ''));
  const there = ours.map(({ from, to }) => text.slice(from, to).trim());
  if (there.length === lines.length && lines.every((line) => there.includes(line))) return text;
  return rewritten(text, header, ours, lines.map((line) => line + ending).join(''));
}

/** The same server may be written as an inline table, with dotted keys, or with a table of its own for `env`. */
function refuseOtherForms(path: string, table: readonly string[], statements: readonly Statement[]): void {
  const other = statements.find(({ table: at, key, isHeader, isArray }) => {
    const whole = [...at, ...key];
    const isAbout = table.every((part, index) => index >= whole.length || whole[index] === part);
    if (!isAbout) return false;
    if (isHeader) return isArray || (at.length > table.length && OUR_KEYS.includes(at[table.length] ?? ''));
    return at.length < table.length || (isSame(at, table) && key.length > 1 && OUR_KEYS.includes(key[0] ?? ''));
  });
  const twice = statements.filter(({ isHeader, table: at }) => isHeader && isSame(at, table)).length > 1;
  if (!other && !twice) return;
  const what = other
    ? `line ${other.line} writes ${table.join('.')} in another form`
    : `${table.join('.')} is there twice`;
  throw new TroupeError('invalid', `${path}: ${what}; change it by hand, nothing was changed`);
}

function appended(text: string, lines: readonly string[], ending: string): string {
  const gap = text.trim() === '' ? '' : text.endsWith('\n') ? ending : ending + ending;
  return text + gap + lines.map((line) => line + ending).join('');
}

/** The statements that troupe wrote before are removed, and the new ones come right behind the header. */
function rewritten(text: string, header: Statement, ours: readonly Statement[], lines: string): string {
  const others = ours.toReversed().reduce((rest, { from, to }) => rest.slice(0, from) + rest.slice(to), text);
  const before = others.slice(0, header.to);
  return before + (before.endsWith('\n') ? '' : '\n') + lines + others.slice(header.to);
}

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((part, index) => part === other[index]);

const keyText = (key: string): string => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key));

/** JSON's texts are TOML's basic strings, but for DEL. */
function written(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value).replaceAll('\x7f', '\\u007f');
  const pairs = Object.entries(value).map(([key, inner]) => `${keyText(key)} = ${written(inner)}`);
  return `{ ${pairs.join(', ')} }`;
}

/** A header or a pair of a TOML file, and where it stands. Values are skipped, not read: this is no parser of TOML. */
type Statement = {
  /** From the beginning of its first line to the end of its last, newline included. */
  readonly from: number;
  readonly to: number;
  readonly line: number;
  /** The table that a header opens, or that a pair stands in. */
  readonly table: readonly string[];
  readonly isHeader: boolean;
  /** A header in double brackets. */
  readonly isArray: boolean;
  /** The key of a pair, relative to its table. */
  readonly key: readonly string[];
};
type Broken = { readonly line: number; readonly why: string };

const BLANK = /[ \t]*/y;
const NOTHING = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y;
const KEY_PART = /[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*/y;

function statementsOf(text: string): { readonly statements: Statement[] } | Broken {
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

/** Where the value that begins here ends; undefined if there is no value, or it is not complete. */
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
