// Where a host may make us look: what it spells outside of what is allowed is refused by its spelling, before the disk is
// asked; what it spells inside still counts by its real path.

import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createJudge } from '../../src/roots/judge.ts';
import type { RootSource } from '../../src/roots/root.ts';
import { scratch } from '../support/scratch.ts';

async function stage(...allow: string[]) {
  const dir = await scratch();
  const at = (name: string) => join(dir.path, name);
  for (const name of ['home/ann', 'outside']) mkdirSync(at(name), { recursive: true });
  symlinkSync(at('home'), at('people'));
  symlinkSync(at('outside'), at('home/escape'));
  symlinkSync(at('home/ann'), at('outside/back'));
  symlinkSync('itself', at('outside/itself'));
  const judge = createJudge({ allowed: () => allow.map((name) => dir.path + name), logger: pino({ level: 'silent' }) });
  return {
    /** The real path, or the first words of what is wrong. */
    found(name: string, from: RootSource = 'host'): string {
      const { uri, problem } = judge(from, { uri: pathToFileURL(dir.path + name).href });
      return problem?.split(/[;,]/)[0] ?? uri.replace(`file://${dir.path}`, '');
    },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}
const OUTSIDE = 'lies outside what x-troupe.roots.allow allows';

it.each([
  '/outside',
  '/outside/back',
  '/outside/itself',
  '/outside/nothing',
  '/homes',
  '/',
  '/home/../outside/nothing',
])('says of %s that it lies outside, and not what is or is not there', async (name) => {
  await using s = await stage('/home');
  expect(s.found(name)).toBe(OUTSIDE);
});

it('looks at what is spelled inside, and refuses what really lies outside', async () => {
  await using s = await stage('/home');
  expect(s.found('/home/ann/')).toBe('/home/ann');
  expect(s.found('/home/./escape/../ann')).toBe('/home/ann');
  expect(s.found('/home/nothing')).toBe('does not exist');
  expect(s.found('/home/escape')).toBe(OUTSIDE);
  expect(s.found('/home/escape/back')).toBe('/home/ann');
});

it('takes either name of an allowed directory that is a link, however it is written', async () => {
  await using s = await stage('/nowhere', '/outside/../people/');
  expect(['/people/ann', '/home/ann', '/people'].map((name) => s.found(name))).toEqual([
    ...['/home/ann', '/home/ann', '/home'],
  ]);
  expect(s.found('/outside')).toBe(OUTSIDE);
});

it('looks wherever the owner or the configuration says', async () => {
  await using s = await stage('/home');
  expect(s.found('/outside', 'owner')).toBe('/outside');
  expect(s.found('/outside/nothing', 'config')).toBe('does not exist');
});
