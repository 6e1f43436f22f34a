// A batch on its way to the writer thread. Copying between threads costs by the object, so it is a few flat lists, and all its
// bytes lie in one buffer, which is handed over.

import type { Op, Value, WriteName } from './statements.ts';

/** So many statements of that name, one after the other; without a name it is a flush. */
export type Run = readonly [name: WriteName | null, count: number];

/** All values, and how many statements of which name they belong to. For bytes stands `undefined`, and their length in `sizes`. */
export type Packed = {
  readonly runs: readonly Run[];
  readonly values: readonly (Value | undefined)[];
  readonly sizes: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

export function pack(ops: readonly (Op | null)[]): Packed {
  const runs: [WriteName | null, number][] = [];
  const values: (Value | undefined)[] = [];
  const blobs: Uint8Array[] = [];
  let last: [WriteName | null, number] | undefined;
  for (const op of ops) {
    const name = op?.name ?? null;
    if (last?.[0] === name) last[1]++;
    else {
      last = [name, 1];
      runs.push(last);
    }
    for (const value of op?.params ?? []) {
      const isBlob = value instanceof Uint8Array;
      values.push(isBlob ? undefined : value);
      if (isBlob) blobs.push(value);
    }
  }
  return { runs, values, sizes: blobs.map(({ byteLength }) => byteLength), bytes: joined(blobs) };
}

function joined(blobs: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(blobs.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const blob of blobs) {
    bytes.set(blob, at);
    at += blob.byteLength;
  }
  return bytes;
}

/** All values as they were. */
export function unpacked({ values, sizes, bytes }: Packed): Value[] {
  let nth = 0;
  let at = 0;
  return values.map((value) => {
    if (value !== undefined) return value;
    const from = at;
    at += sizes[nth++] ?? 0;
    return bytes.subarray(from, at);
  });
}
