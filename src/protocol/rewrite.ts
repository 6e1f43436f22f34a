// Changes one text inside JSON bytes and leaves every other byte as it came.

import { spansOf, stringOf } from './json.ts';

/** The text at that path of members, if each of them is there exactly once. */
export function textAt(object: Buffer, path: readonly string[]): string | undefined {
  const span = locate(object, path);
  return span && stringOf(object.subarray(span.from, span.to));
}

/** The same object with another text at that path; undefined when there is no such text, or two. */
export function withTextAt(object: Buffer, path: readonly string[], text: string): Buffer | undefined {
  const span = locate(object, path);
  if (!span || stringOf(object.subarray(span.from, span.to)) === undefined) return undefined;
  return Buffer.concat([object.subarray(0, span.from), Buffer.from(JSON.stringify(text)), object.subarray(span.to)]);
}

function locate(object: Buffer, path: readonly string[]): { from: number; to: number } | undefined {
  let from = 0;
  let to = object.length;
  for (const key of path) {
    const [span, another] = spansOf(object.subarray(from, to), key);
    if (!span || another) return undefined;
    to = from + span.to;
    from += span.from;
  }
  return { from, to };
}
