// A batch on its way to the writer thread: all values in one flat list, and how many statements of which name they are.
// Copying between threads costs by the object, and a batch of audit rows would be thousands of small ones.

import type { Op, Value, WriteName } from './statements.ts';

/** So many statements of that name, one after the other; no name marks a flush. */
export type Run = readonly [name: WriteName | null, count: number];
export type Packed = { readonly runs: readonly Run[]; readonly values: readonly Value[] };

export function pack(ops: readonly (Op | null)[]): Packed {
  const runs: [WriteName | null, number][] = [];
  const values: Value[] = [];
  let last: [WriteName | null, number] | undefined;
  for (const op of ops) {
    const name = op?.name ?? null;
    if (last?.[0] === name) last[1]++;
    else {
      last = [name, 1];
      runs.push(last);
    }
    if (op) for (const value of op.params) values.push(value);
  }
  return { runs, values };
}
