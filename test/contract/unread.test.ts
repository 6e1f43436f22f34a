// Readers that do not read: what they leave unread is bounded for each, and for all together.

import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { leavesTooMuch } from '../../src/doors/unread.ts';

const MIB = 2 ** 20;

/** Nobody reads what is written there. */
function unread(bytes: number): Writable {
  const stream = new Writable({ write() {} });
  if (bytes > 0) stream.write(Buffer.alloc(bytes));
  return stream;
}

it('lets each leave what it may, and not more', () => {
  const [enough, more] = [unread(5 * MIB), unread(5 * MIB + 1)];
  expect([enough, more].map((each) => leavesTooMuch(each, 5 * MIB))).toEqual([false, true]);
  for (const each of [enough, more]) each.destroy();
});

it('lets those go that leave most when all together leave too much, and the others when they did not', () => {
  const [little, much, most] = [unread(MIB), unread(2 * MIB), unread(6 * MIB)];
  const isCut = (stream: Writable) => leavesTooMuch(stream, 64 * MIB, 10 * MIB);
  expect([little, much, most].map(isCut)).toEqual([false, false, false]);
  const more = unread(4 * MIB);
  expect([more, most, much, little].map(isCut)).toEqual([true, true, false, false]);
  most.destroy();
  expect([little, much, more].map(isCut)).toEqual([false, false, false]);
  for (const each of [much, more]) each.destroy();
});
