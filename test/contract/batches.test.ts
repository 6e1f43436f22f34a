// When frames for a server's process leave: those of one turn together, and half of many ahead of the rest.

import { setImmediate as turnsEnd } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBatches } from '../../src/servers/stdio/batches.ts';

function piped() {
  const written: string[] = [];
  const batches = createBatches((batch) => written.push(batch.toString()));
  let last = 0;
  const sent = () => written.join('').split('\n').filter(Boolean).map(Number);
  return {
    written,
    sent,
    batches,
    /** Adds so many frames in one turn: how often was written before it was over, and in all. */
    async turn(count: number) {
      const before = written.length;
      for (let frame = 0; frame < count; frame++) batches.add(Buffer.from(`${last++}\n`));
      const early = written.length - before;
      await turnsEnd();
      return { early, writes: written.length - before };
    },
    added: () => Array.from({ length: last }, (_, frame) => frame),
  };
}

it('writes the frames of a turn at its end, in one piece', async () => {
  const { turn, written } = piped();
  for (const count of [1, 3, 15, 15]) expect(await turn(count)).toEqual({ early: 0, writes: 1 });
  expect(written[1]).toBe('1\n2\n3\n');
});

it('writes half of many while the rest is made, from the second such turn on', async () => {
  const { turn } = piped();
  expect(await turn(64)).toEqual({ early: 0, writes: 1 });
  expect(await turn(64)).toEqual({ early: 2, writes: 2 });
  expect(await turn(33)).toEqual({ early: 1, writes: 2 });
  expect(await turn(2)).toEqual({ early: 0, writes: 1 });
  expect(await turn(64)).toEqual({ early: 0, writes: 1 });
});

it('writes no more often when a turn has many more frames than the one before', async () => {
  const { turn } = piped();
  await turn(16);
  expect(await turn(1_000)).toEqual({ early: 2, writes: 3 });
});

it('writes each frame once and in order, whatever turns bring', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: 200 }), { maxLength: 12 }), async (counts) => {
      const { turn, sent, added } = piped();
      for (const count of counts) await turn(count);
      expect(sent()).toEqual(added());
    }),
  );
});

it('writes at once when told, and nothing twice', async () => {
  const { batches, written } = piped();
  batches.add(Buffer.from('bye\n'));
  batches.flush();
  expect(written).toEqual(['bye\n']);
  batches.flush();
  await turnsEnd();
  expect(written).toEqual(['bye\n']);
});
