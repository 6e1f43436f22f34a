// A server's definition under another name: only the bytes of the name change, every other stays as the server wrote it.
// What a host could read under a second name is not given out at all.

import { members, type Span } from '../protocol/json.ts';

/** The definition with another name; undefined if it is not clear which of its members a host would take for it. */
export function renamed(definition: Buffer, key: string, name: string): Buffer | undefined {
  const span = spanOf(definition, key);
  return span && splice(definition, span, JSON.stringify(name));
}

/** The definition with something before its name, which keeps its own bytes. */
export function prefixed(definition: Buffer, key: string, prefix: string): Buffer | undefined {
  const span = spanOf(definition, key);
  return span && splice(definition, { from: span.from + 1, to: span.from + 1 }, prefix);
}

/** Readers differ in which of two they take, and Go's takes `Name` for `name` as well. */
function spanOf(definition: Buffer, key: string): Span | undefined {
  const folded = key.toLowerCase();
  let span: Span | undefined;
  for (const [each, value] of members(definition)) {
    if (each.length !== key.length || each.toLowerCase() !== folded) continue;
    if (span || each !== key) return undefined;
    const from = value.byteOffset - definition.byteOffset;
    span = { from, to: from + value.length };
  }
  return span;
}

function splice(bytes: Buffer, { from, to }: Span, text: string): Buffer {
  return Buffer.concat([bytes.subarray(0, from), Buffer.from(text), bytes.subarray(to)]);
}
