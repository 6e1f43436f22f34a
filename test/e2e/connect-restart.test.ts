// Daemons die and are restarted under `troupe connect`, and its host goes on: each request has one answer, none is sent
// twice, and who has to come back does.

import { readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import Sqlite from 'better-sqlite3';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { type Daemon, daemon, isAlive, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';
import { HOST_SERVERS, sdkHost } from '../support/sdk-host.ts';
import { call, INITIALIZE, startShim } from '../support/shim.ts';

const started = (troupe: object = { http: { enabled: false } }) => daemon({ servers: HOST_SERVERS, troupe });
const shim = (d: Daemon) => ({ command: process.execPath, args: [MAIN, 'connect'], env: d.env });
const host = (d: Daemon) => sdkHost('v1', new StdioClientTransport(shim(d)));
const isLost = (answer: any) => answer.error?.code === -32011;
const pidOf = async (d: Daemon) => (await d.status()).daemon.pid;

it('after kill -9 the daemon is started again, and the same session goes on', async () => {
  await using d = await started();
  await using h = await host(d);
  await h.client.subscribeResource({ uri: 'memo://a' });
  const before = await pidOf(d);
  const lost = h.call('slow__sleep', { ms: 60_000 });
  lost.catch(() => {});
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  await d.kill();
  await expect(lost).rejects.toThrow(/restarted; the request was sent and its outcome is unknown/);
  await expect(lost).rejects.toMatchObject({
    code: -32011,
    data: { troupe: { code: 'lost', delivery: 'outcome unknown' } },
  });
  expect((await h.call('echo__echo', { message: 'again' })).content[0].text).toBe('again');
  expect(await pidOf(d)).not.toBe(before);
  expect((await d.status()).sessions).toBe(1);
  await h.call('things__touch', { uri: 'memo://a' });
  await h.hears('resources/updated'); // what it had subscribed to is part of the session
}, 120_000);

it('after a clean stop nobody is started until the host wants something', async () => {
  await using d = await started();
  const transport = new StdioClientTransport(shim(d));
  await using h = await sdkHost('v1', transport);
  const before = await pidOf(d);
  expect(await d.down()).toBe(0);
  await eventually(async () => !(await isAlive(before)));
  await attempts(join(d.state, 'control.sock'), 3);
  const { stdout: parents } = await execa('ps', ['-A', '-o', 'ppid=']);
  expect(parents.split('\n').map(Number)).not.toContain(transport.pid);
  const answers = await Promise.all([1, 2, 3].map((each) => h.call('echo__echo', { message: `m${each}` })));
  expect(answers.map(({ content }) => content[0].text)).toEqual(['m1', 'm2', 'm3']);
  expect(await pidOf(d)).not.toBe(before);
}, 120_000);

it('two hosts that find no daemon start one between them', async () => {
  await using d = await started();
  expect(await d.down()).toBe(0);
  const hosts = await Promise.all([host(d), host(d)]);
  const answers = await Promise.all(hosts.map((each) => each.call('echo__echo', { message: 'hi' })));
  expect(answers.map(({ content }) => content[0].text)).toEqual(['hi', 'hi']);
  expect((await d.status()).sessions).toBe(2);
  await Promise.all(hosts.map((each) => each.close()));
}, 120_000);

it('a session that the next daemon does not know is opened again, unseen by the host', async () => {
  await using d = await started();
  await using h = await host(d);
  await d.kill();
  await d.cli('down'); // whatever the shim has started meanwhile
  await forgetSessions(d);
  expect((await h.call('echo__echo', { message: 'new' })).content[0].text).toBe('new');
  await h.hears('tools/list_changed');
}, 120_000);

it('kill -9 under many calls: each has one answer, and those that came later are served', async () => {
  await using d = await started();
  const s = startShim(d.env);
  s.send(INITIALIZE, { method: 'notifications/initialized' });
  await s.answer(0);
  for (let id = 1; id <= 100; id++) s.send(call(id, 'slow__sleep', { ms: 10 * id }));
  await eventually(() => s.lines.length > 20, 15_000);
  await d.kill();
  await eventually(() => s.lines.some(isLost)); // until it has noticed, the shim sends, and knows no more than its host
  for (let id = 101; id <= 150; id++) s.send(call(id, 'echo__echo', { message: `m${id}` }));
  await s.answer(150);
  const ids = Array.from({ length: 150 }, (_, index) => index + 1);
  await eventually(() => expect(ids.filter((id) => s.answers(id).length !== 1)).toEqual([]), 30_000);
  const lost = ids.filter((id) => isLost(s.answers(id)[0]));
  expect(lost.every((id) => id <= 100)).toBe(true);
  s.child.stdin.end();
  expect(await s.exit).toBe(0);
}, 120_000);

it('a daemon that cannot start is no mystery: the host is told why, and the shim ends', async () => {
  await using dir = await scratch();
  const config = join(dir.path, 'troupe.json');
  await writeFile(config, '{"mcpServers": ');
  const env = { PATH: process.env.PATH, HOME: dir.path, TROUPE_STATE: join(dir.path, 'state') };
  const s = startShim(env, '--config', config);
  s.send(INITIALIZE);
  expect(await s.exit).toBe(4);
  expect(s.said()).toContain(`${config}:1:`);
  expect(s.lines).toMatchObject([{ id: 0, error: { code: -32010, message: expect.stringContaining(config) } }]);
}, 120_000);

it('a daemon is not started in silence: its directory and file are told, and that another one runs elsewhere', async () => {
  await using d = await started();
  await using dir = await scratch();
  // A host that drops the variables of the shell in which `troupe up` was said.
  const env = { PATH: process.env.PATH, HOME: dir.path, TROUPE_NATS_SERVER: d.env.TROUPE_NATS_SERVER };
  const config = join(dir.path, '.config/troupe/troupe.json');
  await mkdir(dirname(config), { recursive: true });
  await writeFile(config, '{"mcpServers": ');
  const s = startShim(env);
  s.send(INITIALIZE);
  expect(await s.exit).toBe(4);
  const [first, second] = s.said().split('\n');
  const state = join(dir.path, ...(process.platform === 'darwin' ? DARWIN : ['.local', 'state']), 'troupe');
  expect(first).toBe(`troupe: no daemon runs on ${state}; starting one with ${config}`);
  if (process.platform !== 'linux') return; // only there the others can be seen
  expect(second).toMatch(/^troupe: you have another daemon on .*; to use it, set TROUPE_STATE to that/);
  expect(second).toContain(d.state);
}, 120_000);

const DARWIN = ['Library', 'Application Support'];

/** Resolves when somebody has looked for the daemon so often, in vain. */
async function attempts(path: string, count: number): Promise<void> {
  let seen = 0;
  const server = createServer((socket) => {
    seen += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  await eventually(() => seen >= count, 20_000);
  await new Promise((resolve) => server.close(resolve));
}

/** As if its row had expired while no daemon was there. */
async function forgetSessions(d: Daemon): Promise<void> {
  const file = readdirSync(`${d.state}/database`).find((each) => each.endsWith('.db') && !each.includes('lock'));
  const db = new Sqlite(`${d.state}/database/${file}`);
  db.prepare('DELETE FROM sessions').run();
  db.close();
}
