// Adds and removes one property of an object in JSONC text; every other byte, comments included, stays as it is.
// jsonc-parser's own `modify` reformats the neighbours and drops the comments beside them, hence this file.

import { createScanner, type Node } from 'jsonc-parser';

type Edit = { readonly offset: number; readonly length: number; readonly text: string };

/** The text with `key` added as the last property of `object`, indented like its neighbours. */
export function insertProperty(text: string, object: Node, key: string, value: unknown): string {
  const close = object.offset + object.length - 1;
  const last = object.children?.at(-1);
  const isOneLine = last !== undefined && !text.slice(object.offset, close).includes('\n');
  const written = isOneLine ? oneLine(key, value) : indented(text, object, key, value);
  const comma = last && commaAfter(text, endOf(last), close);
  const isTrailing = comma !== undefined;
  const commaEdit: Edit[] = last && !isTrailing ? [{ offset: endOf(last), length: 0, text: ',' }] : [];
  const ending = isTrailing ? ',' : '';
  if (isOneLine) {
    const offset = isTrailing ? comma + 1 : endOf(last);
    return apply(text, [...commaEdit, { offset, length: 0, text: ` ${written}${ending}` }]);
  }
  const margin = marginBefore(text, close);
  // The brace stands alone on its line, or the new property must give it a line of its own.
  const edit =
    margin === undefined
      ? {
          offset: close,
          length: 0,
          text: `${eolOf(text)}${written}${ending}${eolOf(text)}${marginOfLine(text, object.offset)}`,
        }
      : { offset: close - margin.length, length: 0, text: `${written}${ending}${eolOf(text)}` };
  return apply(text, [...commaEdit, edit]);
}

/** The text without this property, its comma, and, if nothing else stands there, its line. */
export function removeProperty(text: string, object: Node, property: Node): string {
  const siblings = object.children ?? [];
  const previous = siblings[siblings.indexOf(property) - 1];
  const comma = commaAfter(text, endOf(property), object.offset + object.length - 1);
  const edits = [lineOrLess(text, property.offset, comma === undefined ? endOf(property) : comma + 1)];
  // The last property has no comma behind it: the one before it must lose its own, for hosts that read strict JSON.
  if (comma === undefined && previous) {
    const before = commaAfter(text, endOf(previous), property.offset);
    if (before !== undefined) edits.push({ offset: before, length: 1, text: '' });
  }
  return apply(text, edits);
}

const endOf = (node: Node): number => node.offset + node.length;

function commaAfter(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(from);
  scanner.scan();
  const offset = scanner.getTokenOffset();
  return offset < to && text[offset] === ',' ? offset : undefined;
}

/** Widens a span to whole lines if only blanks stand before it and only blanks or its own comment behind it. */
function lineOrLess(text: string, start: number, end: number): Edit {
  const margin = marginBefore(text, start);
  const behind = /^[ \t]*(\/\/[^\n]*|\/\*(?:(?!\*\/)[^\n])*\*\/[ \t\r]*)?(\r?\n|$)/.exec(text.slice(end));
  if (margin === undefined || !behind) {
    const blanks = /^[ \t]*/.exec(text.slice(end))?.[0].length ?? 0;
    return { offset: start, length: end + blanks - start, text: '' };
  }
  return { offset: start - margin.length, length: end + behind[0].length - start + margin.length, text: '' };
}

/** The blanks between the beginning of the line and this offset; undefined if something else stands there. */
function marginBefore(text: string, offset: number): string | undefined {
  const before = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return /^[ \t]*$/.test(before) ? before : undefined;
}

function marginOfLine(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}

const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

const oneLine = (key: string, value: unknown): string => `${JSON.stringify(key)}: ${JSON.stringify(value)}`;

function indented(text: string, object: Node, key: string, value: unknown): string {
  const step = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
  const [first] = object.children ?? [];
  const margin = (first && marginBefore(text, first.offset)) ?? marginOfLine(text, object.offset) + step;
  const lines = JSON.stringify(value, undefined, step).split('\n');
  return `${margin}${JSON.stringify(key)}: ${lines.join(eolOf(text) + margin)}`;
}

function apply(text: string, edits: Edit[]): string {
  // From the end, so that offsets stay true; of two at the same place the later one goes in first.
  return edits
    .toReversed()
    .toSorted((a, b) => b.offset - a.offset)
    .reduce((result, { offset, length, text: inserted }) => {
      return result.slice(0, offset) + inserted + result.slice(offset + length);
    }, text);
}
