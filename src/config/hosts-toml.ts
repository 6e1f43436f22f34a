// Puts one table into a TOML file, or brings the one that is there up to date; every other byte stays. Enough of TOML is
// read to know where each statement begins and ends; a file that cannot be read so far, or says the same in another
// way, is not touched.

import { TroupeError } from '../protocol/failures.ts';
import { type Statement, statementsOf } from './hosts-statements.ts';

export type Table = {
  readonly path: string;
  readonly text: string;
  readonly table: readonly [string, string];
  readonly values: Readonly<Record<string, unknown>>;
};

/** What says how a server is reached; all of it is ours to write. */
const WAY_KEYS = ['command', 'args', 'env', 'url', 'bearer_token_env_var', 'http_headers', 'env_http_headers'];

export function withTable({ path, text, table, values }: Table): string {
  const read = statementsOf(text);
  if ('line' in read)
    throw new TroupeError('invalid', `${path}:${read.line}: ${read.why}; mend the file first, nothing was changed`);
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = Object.entries(values).map(([key, value]) => `${key} = ${written(value)}`);
  const [header, ...rest] = read.statements.filter(({ table: at }) => isSame(at, table));
  refuseOtherForms(path, table, read.statements);
  if (!header) return appended(text, [`[${table.map(keyText).join('.')}]`, ...lines], ending);
  const ours = rest.filter(({ key }) => WAY_KEYS.includes(key[0] ?? ''));
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
    if (isHeader) return isArray || (at.length > table.length && WAY_KEYS.includes(at[table.length] ?? ''));
    return at.length < table.length || (isSame(at, table) && key.length > 1 && WAY_KEYS.includes(key[0] ?? ''));
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

/** Our statements go, and the new ones come right behind the header. */
function rewritten(text: string, header: Statement, ours: readonly Statement[], lines: string): string {
  const kept = ours.toReversed().reduce((rest, { from, to }) => rest.slice(0, from) + rest.slice(to), text);
  const before = kept.slice(0, header.to);
  return before + (before.endsWith('\n') ? '' : '\n') + lines + kept.slice(header.to);
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
