// `doctor` finds what would keep troupe from starting, launches real servers, and leaves no process and no file behind.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { descriptorCheck, nodeCheck } from '../../src/cli/doctor/machine.ts';
import { type Workplace, workplace } from '../support/cli.ts';
import { natsServer } from '../support/nats.ts';

type Check = { name: string; state: string; detail: string; remedy?: string };

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}.mjs`, import.meta.url));
const node = (name: string, more: object = {}) => ({ command: process.execPath, args: [fixture(name)], ...more });
const configure = ({ config }: Workplace, mcpServers: object): void =>
  writeFileSync(config, JSON.stringify({ mcpServers }));

async function diagnose(place: Workplace, ...words: string[]): Promise<{ code: number | null; checks: Check[] }> {
  const { code, stdout } = await place.run('doctor', '--json', ...words);
  return { code, checks: JSON.parse(stdout).checks };
}
const named = (checks: Check[], name: string): Check[] => checks.filter((check) => check.name === name);

test('a healthy machine is all ok, and nothing is left behind', async () => {
  await using bus = await natsServer();
  await using place = workplace({ NATS_URL: bus.url });
  configure(place, { demo: node('echo') });
  const before = readdirSync(place.directory);
  const { code, checks } = await diagnose(place);
  expect(checks.filter(({ state }) => state === 'fail')).toEqual([]);
  expect(code).toBe(0);
  expect(checks.map(({ name }) => name)).toEqual([
    'node',
    'sqlite',
    'limits',
    'state',
    'disk',
    'daemon',
    'nats',
    'config',
    'demo',
  ]);
  expect(named(checks, 'demo')[0]?.detail).toMatch(/^fixture 1\.0\.0, protocol 2025-11-25, launched in \d+ ms$/);
  expect(readdirSync(place.directory)).toEqual(before);
});

test('servers that do not launch say why, each on its own, and none survives', async () => {
  await using place = workplace();
  const marker = `marker-${process.pid}-${Date.now()}`;
  const hangs = { ...node('hangs'), args: ['-e', 'process.stdin.resume(); setInterval(() => {}, 1e6)', marker] };
  configure(place, {
    dies: node('dies-at-start'),
    missing: { command: 'no-such-command-here' },
    silent: { ...hangs, 'x-troupe': { openMs: 500, stdinMs: 50, termMs: 50 } },
    demo: node('echo'),
  });
  const { code, checks } = await diagnose(place);
  expect(code).toBe(1);
  expect(named(checks, 'dies')[0]).toMatchObject({ state: 'fail', detail: expect.stringMatching(/^exited with code/) });
  expect(named(checks, 'missing')[0]?.detail).toBe('command no-such-command-here was not found');
  expect(named(checks, 'silent')[0]?.detail).toMatch(/^did not answer initialize within 0.5 s/);
  expect(named(checks, 'demo')[0]?.state).toBe('ok');
  expect(execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' })).not.toContain(marker);
});

test('--no-launch only looks for the command', async () => {
  await using place = workplace();
  configure(place, { dies: node('dies-at-start') });
  const { checks } = await diagnose(place, '--no-launch');
  expect(named(checks, 'dies')[0]).toMatchObject({ state: 'ok', detail: expect.stringContaining('not launched') });
});

test('everything wrong in the configuration is told at once, with its place', async () => {
  await using place = workplace();
  writeFileSync(place.config, '{"mcpServers": {\n"a": {"command": 5},\n"b": {"command": "x", "args": "y"}\n}}');
  const { code, checks } = await diagnose(place);
  expect(code).toBe(1);
  const complaints = named(checks, 'config').map(({ detail }) => detail);
  expect(complaints.some((each) => each.startsWith(`${place.config}:2:`))).toBe(true);
  expect(complaints.some((each) => each.startsWith(`${place.config}:3:`))).toBe(true);
});

test('a state directory open to others, and a bus that is not there, come with their remedy', async () => {
  await using place = workplace({ NATS_URL: 'nats://127.0.0.1:1' });
  configure(place, {});
  chmodSync(place.directory, 0o755);
  const { code, stdout } = await place.run('doctor');
  expect(code).toBe(1);
  expect(stdout).toContain(`→ chmod 700 ${place.directory}`);
  expect(stdout).toMatch(/fail {2}nats .*cannot be reached\n +→ start it/);
});

test('a state directory that cannot be is a failure', async () => {
  await using place = workplace();
  mkdirSync(join(place.directory, 'state'));
  writeFileSync(join(place.directory, 'file'), '');
  await using other = workplace({ TROUPE_STATE: join(place.directory, 'file', 'below') });
  configure(other, {});
  const { code, checks } = await diagnose(other);
  expect(code).toBe(1);
  expect(named(checks, 'state')[0]?.remedy).toContain('TROUPE_STATE');
});

test.each([
  ['20.19.0', 'ok'],
  ['20.18.9', 'fail'],
  ['24.1.0', 'ok'],
  ['22.12.0', 'ok'],
  ['22.11.0', 'fail'],
  ['21.7.3', 'fail'],
  ['18.20.0', 'fail'],
])('Node %s is %s', (version, state) => expect(nodeCheck(version).state).toBe(state));

test('says what the limit of descriptors gives room for, and warns where that is little', () => {
  const limits = { processes: Number.POSITIVE_INFINITY, memory: 2 ** 33 };
  expect(descriptorCheck({ ...limits, descriptors: 1_024 })).toEqual({
    ...{ name: 'limits', state: 'ok' },
    detail: '1024 descriptors: for 384 connections of hosts and 96 processes of servers',
  });
  expect(descriptorCheck({ ...limits, descriptors: 256 })).toMatchObject({
    ...{ state: 'warn', remedy: 'raise ulimit -n to 1024 or more' },
    detail: '256 descriptors: for 96 connections of hosts and 24 processes of servers',
  });
  const { detail } = descriptorCheck({ ...limits, descriptors: Number.POSITIVE_INFINITY });
  expect(detail).toMatch(/^no limit of descriptors: for 4096 connections of hosts and as many processes/);
});
