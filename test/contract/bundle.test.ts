// What dist/bundle is like, which the daemon loads at its start and keeps in memory.

import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { codeFileOf } from '../../src/bundle.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const CHUNKS = new URL('../../dist/bundle/chunks/', import.meta.url).pathname;
const files = readdirSync(CHUNKS);
const chunks = files.filter((name) => name.endsWith('.cjs'));
const textOf = (name: string) => readFileSync(join(CHUNKS, name), 'utf8');

it('has code of each chunk, but of those that import by name, and of what is loaded before there is code', () => {
  const without = chunks.filter((name) => name !== 'young.cjs' && !files.includes(codeFileOf(name)));
  expect(without.filter((name) => !/\bimport\(/.test(textOf(name)))).toEqual([]);
  for (const name of ['run.cjs', 'daemon.cjs', 'undici.cjs']) expect(without).not.toContain(name);
});

it('has no character that would take two bytes, and make V8 keep the whole text so', () => {
  expect(chunks.filter((name) => /[\u0100-\uffff]/.test(textOf(name)))).toEqual([]);
});

it('is strict, as the sources are', () => {
  expect(chunks.filter((name) => !/^["']use strict["'];?$/m.test(textOf(name).slice(0, 1_000)))).toEqual([]);
});

it('runs a text that somebody has changed since its code was kept, though it is as long', async () => {
  await using dir = await scratch();
  const file = join(dir.path, 'words.cjs');
  const bundle = new URL('../../dist/bundle/bundle.cjs', import.meta.url).pathname;
  const run = async (script: string) =>
    (await execa(process.execPath, ['-e', script], { env: { BUNDLE: bundle, FOLDER: dir.path, FILE: file } })).stdout;
  const said = () => run('require(process.env.BUNDLE).loadWithCode(process.env.FOLDER); require(process.env.FILE)');
  writeFileSync(file, "console.log('one')");
  await run(`
    const { BUNDLE, FOLDER, FILE } = process.env;
    const { codeFileOf, codeWhileLoading } = require(BUNDLE);
    const keep = (file, code) => require('node:fs').writeFileSync(codeFileOf(file), code);
    codeWhileLoading(FOLDER, () => require(FILE), keep);
  `);
  const kept = statSync(codeFileOf(file)).mtimeMs / 1_000;
  const write = (words: string, at: number) => {
    writeFileSync(file, `console.log('${words}')`);
    utimesSync(file, at, at);
  };
  write('two', kept - 1);
  expect(await said()).toBe('one'); // so it is the code that runs
  write('two', kept + 1);
  expect(await said()).toBe('two');
});

it('is replaced by a build file by file, each whole, so that what starts or runs meanwhile finds no half of one', async () => {
  await using dir = await sources();
  const build = () => execa(process.execPath, ['bundle.mjs'], { cwd: dir.path });
  const bundle = join(dir.path, 'dist/bundle');
  const [program, chunk] = [join(bundle, 'troupe.cjs'), join(bundle, 'chunks/run.cjs')];
  await build();
  const before = readFileSync(chunk, 'utf8');
  const { ino } = statSync(program);
  const open = openSync(chunk, 'r');
  writeFileSync(join(bundle, 'chunks/gone.cjs'), '');
  appendFileSync(join(dir.path, 'src/cli/run.ts'), 'console.log("built again");');
  await build();
  expect(readFileSync(open, 'utf8')).toBe(before); // whoever has begun to read it reads on
  closeSync(open);
  expect(readFileSync(chunk, 'utf8')).toContain('built again');
  expect(statSync(program).ino).toBe(ino); // what is the same stays
  const { stdout } = await execa(process.execPath, [program, '--version']);
  expect(stdout).toMatch(/^built again\n\d/);
  expect(readdirSync(join(bundle, 'chunks'))).not.toContain('gone.cjs');
  expect(readdirSync(join(dir.path, 'dist'))).toEqual(['bundle']);
});

it('leaves nothing of a build that was ended, and clears away what was left by one that was killed', async () => {
  await using dir = await sources();
  const dist = join(dir.path, 'dist');
  const killed = join(dist, '.bundle-killed');
  mkdirSync(killed, { recursive: true });
  utimesSync(killed, 1, 1);
  const build = execa(process.execPath, ['bundle.mjs'], { cwd: dir.path, reject: false });
  await eventually(() => expect(readdirSync(dist)).not.toContain('.bundle-killed'));
  build.kill('SIGTERM');
  await build;
  expect(readdirSync(dist).filter((name) => name.startsWith('.bundle-'))).toEqual([]);
});

/** All that the bundle is made of, in a folder of its own. */
async function sources() {
  const dir = await scratch();
  const root = new URL('../..', import.meta.url).pathname;
  for (const name of ['src', 'machines', 'plugins', 'bundle.mjs', 'package.json'])
    cpSync(join(root, name), join(dir.path, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(dir.path, 'node_modules'));
  return dir;
}
