// What a batch carries comes out of the other thread as it went in.

import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { type Packed, pack, unpacked } from '../../src/store/packed.ts';

function sent(batch: Packed): Packed {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(batch, [batch.bytes.buffer]);
  const { message } = receiveMessageOnPort(port2) as { message: Packed };
  port1.close();
  return message;
}

it('keeps values of every type, and bytes that are empty, large, or a part of others', () => {
  const large = Buffer.alloc(300_000, 7);
  const first = ['text', 1, null, Buffer.from('abc')];
  const second = ['', 2.5, 12n, Buffer.alloc(0)];
  const third = [null, -1, large.subarray(5, 9), large];
  const ops = [first, second, third].map((params) => ({ name: 'setTaskStatus', params }) as const);
  const batch = pack([ops[0] ?? null, null, ops[1] ?? null, ops[2] ?? null]);
  const arrived = sent(batch);
  expect(arrived.runs).toEqual([
    ['setTaskStatus', 1],
    [null, 1],
    ['setTaskStatus', 2],
  ]);
  const values = unpacked(arrived).map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
  expect(values).toEqual([...first, ...second, ...third]);
  expect(large).toEqual(Buffer.alloc(300_000, 7)); // what was handed over is a copy
});

it('is as good a second time, when the writer has to try again', () => {
  const batch = sent(pack([{ name: 'setMeta', params: ['key', Buffer.from('value')] }]));
  expect(unpacked(batch)).toEqual(unpacked(batch));
});
