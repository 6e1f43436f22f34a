// docs/ARCHITECTURE.md tells the way of a call through the house, file by file. A daemon that counts the functions it runs is
// asked whether that is the way.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, MODULES, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

const ROUNDS = 5;
const [, overNats = '', overHttp = ''] =
  /### Its way\n([\s\S]*?)\nOver HTTP([\s\S]*?)\n### /.exec(readFileSync(join(ROOT, 'docs/ARCHITECTURE.md'), 'utf8')) ??
  [];

let dir: Scratch;
let d: Daemon;
let marks = 0;

beforeAll(async () => {
  dir = await scratch();
  mkdirSync(join(dir.path, 'files'));
  const env = {
    TROUPE_TEST_FILES: join(dir.path, 'files'),
    NODE_OPTIONS: `--import ${join(ROOT, 'test/support/files-run.mjs')}`,
  };
  d = await daemon({ servers: { echo: fixture('echo', { approve: 'never' }) }, env, main: MODULES });
});
afterAll(async () => {
  await d?.[Symbol.asyncDispose]();
  await dir?.[Symbol.asyncDispose]();
});

/** The files that have run a function since the last time. */
async function filesRun(): Promise<string[]> {
  const path = join(dir.path, 'files', String(++marks));
  process.kill(d.pid, 'SIGUSR2');
  return eventually(() => JSON.parse(readFileSync(path, 'utf8')));
}

/**
 * The files that each of several calls has run: what the daemon does meanwhile for other reasons is not in all of them. A call
 * that says false has gone another way, and does not count.
 */
async function wayOf(call: () => Promise<boolean>): Promise<string[]> {
  const ways: string[][] = [];
  while (ways.length < 2 * ROUNDS) {
    await filesRun();
    const counts = await call();
    const files = await filesRun();
    if (counts) ways.push(files);
  }
  const [last = [], ...others] = ways.slice(ROUNDS).reverse(); // the first ones fill memories
  return last.filter((file) => others.every((way) => way.includes(file))).sort();
}

const named = (text: string): string[] => {
  const paths = [...text.matchAll(/[\w-]+\/[\w/-]*(\{[\w,-]+\}|[\w-]+)\.ts/g)].map(([path]) => path);
  const expanded = paths.flatMap((path) => {
    const [braces, names = ''] = /\{(.*)\}/.exec(path) ?? [];
    return braces ? names.split(',').map((name) => path.replace(braces, name)) : [path];
  });
  return [...new Set(expanded)];
};
const isOfTheBus = (path: string) => /^(bus|doors\/nats)\//.test(path);

it('over NATS', async () => {
  const way = await wayOf(async () => (await d.request('troupe.call.echo.echo', { message: 'hi' })).code === undefined);
  expect(way).toEqual(named(overNats).sort());
  expect(overNats).toContain(`That is ${way.length} files`);
});

it('over HTTP', async () => {
  const host = await rawHost(`${await d.http()}/mcp`);
  const params = { name: 'echo__echo', arguments: { message: 'hi' } };
  // An answer that takes its time becomes a stream.
  const way = await wayOf(async () => {
    const { headers, body } = await host.send('POST', { id: 1, method: 'tools/call', params });
    await body.dump();
    return headers['content-type'] === 'application/json';
  });
  const shared = named(overNats).filter((path) => !isOfTheBus(path));
  expect(way).toEqual([...new Set([...shared, ...named(overHttp)])].sort());
  expect(overHttp).toContain(`${way.length} in all`);
  await host.close();
});
