// What dist/bundle is like, which the daemon loads at its start and keeps in memory.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const CHUNKS = new URL('../../dist/bundle/chunks/', import.meta.url).pathname;
const files = readdirSync(CHUNKS);
const chunks = files.filter((name) => name.endsWith('.cjs'));
const textOf = (name: string) => readFileSync(join(CHUNKS, name), 'utf8');

it('has code of each chunk, but of those that import by name, and of what is loaded before there is code', () => {
  const without = chunks.filter((name) => name !== 'young.cjs' && !files.includes(`${name}.code`));
  expect(without.filter((name) => !/\bimport\(/.test(textOf(name)))).toEqual([]);
  for (const name of ['run.cjs', 'daemon.cjs', 'undici.cjs']) expect(without).not.toContain(name);
});

it('has no character that would take two bytes, and make V8 keep the whole text so', () => {
  expect(chunks.filter((name) => /[\u0100-\uffff]/.test(textOf(name)))).toEqual([]);
});
