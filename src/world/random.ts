// Unguessable bytes, drawn a page at a time: a dozen of them take nearly as long as a page. No byte is given out twice.

import { randomBytes } from 'node:crypto';

const POOL_BYTES = 4_096;
let pool = Buffer.alloc(0);
let at = 0;

export function random(count: number): Buffer {
  if (at + count > pool.length) {
    pool = randomBytes(Math.max(count, POOL_BYTES));
    at = 0;
  }
  at += count;
  return pool.subarray(at - count, at);
}
