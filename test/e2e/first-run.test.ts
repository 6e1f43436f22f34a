// The first run of somebody who has nothing: no configuration, an empty home. Three real servers from npm come up, the
// words on the terminal say how to call them, and Ctrl-C ends all of it.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAlive, MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let home: Scratch;
let env: Record<string, string>;
let up: ReturnType<typeof start>;
let words = '';

const start = () => execa(process.execPath, [MAIN, 'up'], { ...how(), all: true, buffer: true });
const troupe = (...args: string[]) => execa(process.execPath, [MAIN, ...args], how());
// From the checkout, where npx finds the servers without the network.
const how = () => ({ env, extendEnv: false, reject: false, cwd: ROOT }) as const;

beforeAll(async () => {
  home = await scratch();
  const { path } = await natsBinary();
  env = { PATH: process.env.PATH ?? '', HOME: home.path, TROUPE_NATS_SERVER: path, NO_COLOR: '1' };
  up = start();
  up.all.on('data', (chunk) => {
    words += chunk;
  });
  await eventually(() => expect(words).toContain('Ctrl-C stops all of it.'), 60_000);
}, 90_000);
afterAll(async () => {
  up.kill('SIGKILL');
  await up;
  await home[Symbol.asyncDispose]();
});

test('the banner names what runs, how to call it and where to look', async () => {
  expect(words).toMatch(/^troupe \S+ is running, pid \d+$/m);
  expect(words).toMatch(/^ +bus +nats:\/\/127\.0\.0\.1:\d+ \(run by troupe\)$/m);
  for (const name of ['everything', 'filesystem', 'memory'])
    expect(words).toMatch(new RegExp(`^ +(servers +)?${name} +ready +\\d+ tools$`, 'm'));
  expect(words).toContain('npx troupe call everything echo message=hi');
  expect(words).toContain(`nats req troupe.call.everything.echo '{"message":"hi"}'`);
  for (const verb of ['status', 'tools', 'logs -f']) expect(words).toContain(`npx troupe ${verb}`);
  expect(words.trim().split('\n').length).toBeLessThan(16);
});

test('each of the three answers a call', async () => {
  const echo = await troupe('call', 'everything', 'echo', 'message=hi');
  expect(echo).toMatchObject({ exitCode: 0, stdout: 'Echo: hi' });
  const { stdout: folders } = await troupe('call', 'filesystem', 'list_allowed_directories');
  const files = folders.split('\n').find((line) => line.startsWith('/')) ?? '';
  const read = await troupe('call', 'filesystem', 'read_text_file', `path=${join(files, 'welcome.txt')}`);
  expect(read.stdout).toContain('the filesystem server can read');
  expect((await troupe('call', 'memory', 'read_graph')).exitCode).toBe(0);
});

test('a tool that fails exits with 5, in its own words', async () => {
  const { exitCode, stderr, stdout } = await troupe('call', 'filesystem', 'read_text_file', 'path=/etc/passwd');
  expect(exitCode).toBe(5);
  expect(stdout + stderr).toMatch(/denied|outside/i);
});

test('Ctrl-C ends every process of it, the children of npx too', async () => {
  const { daemon, bus, servers } = JSON.parse((await troupe('status', '--json')).stdout);
  const table = (await execa('ps', ['-A', '-o', 'pid=,pgid='])).stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const groups = servers.map(({ pid }: { pid: number }) => String(pid));
  const children = table.filter(([, group]) => groups.includes(group)).map(([pid]) => Number(pid));
  expect(children.length).toBeGreaterThan(servers.length); // npx, and the server it runs
  up.kill('SIGINT');
  expect((await up).exitCode).toBe(0);
  const pids = [daemon.pid, bus.pid, ...children];
  await eventually(async () => expect(await Promise.all(pids.map(isAlive))).not.toContain(true));
  for (const name of ['control.sock', 'daemon.json']) expect(existsSync(join(daemon.stateDir, name))).toBe(false);
  expect(await troupe('status')).toMatchObject({
    ...{ exitCode: 4, stderr: 'troupe: troupe is not running; start it with `troupe up`' },
  });
});
