// What is kept while a call is in flight leaves nothing behind, also not what a Map would: the tables that it has outgrown.

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Transients } from '../../src/calls/transients.ts';

it('is a Map as far as its callers can see', () => {
  const key = fc.integer({ min: 0, max: 9 });
  const step = fc.oneof(
    fc.tuple(fc.constant('set' as const), key, fc.nat()),
    fc.tuple(fc.constant('delete' as const), key, fc.constant(0)),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const [ours, map] = [new Transients<number, number>(), new Map<number, number>()];
      for (const [what, key, value] of steps) {
        if (what === 'delete') expect(ours.delete(key)).toBe(map.delete(key));
        else {
          ours.set(key, value);
          map.set(key, value);
        }
        expect(ours.size).toBe(map.size);
        expect(ours.get(key)).toBe(map.get(key));
        expect(ours.has(key)).toBe(map.has(key));
      }
      expect(ours.values().sort()).toEqual([...map.values()].sort());
    }),
  );
});

it('keeps nothing of what has left, even before the next full collection', () => {
  setFlagsFromString('--expose-gc');
  const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc');
  const kept = new Transients<number, number[]>();
  for (let id = 0; id < 64; id++) kept.set(id, []);
  for (const _ of ['it is among the old', 'from here on']) collect();
  const before = oldBytes();
  let most = before;
  for (let id = 64; id < 4_096; id++) {
    kept.set(id, new Array<number>(1_024).fill(id));
    kept.delete(id - 64);
    if (id % 64 > 0) continue;
    collect({ type: 'minor' });
    most = Math.max(most, oldBytes());
  }
  expect(most - before).toBeLessThan(4 * 1024 * 1024); // of a Map it is 30 MB, until the next full collection
});

const oldBytes = (): number =>
  getHeapSpaceStatistics().find((each) => each.space_name === 'old_space')?.space_used_size ?? 0;
