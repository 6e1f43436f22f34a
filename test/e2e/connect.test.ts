// `troupe connect` as hosts use it: a command that they start. It finds the daemon or starts it, outlives it, and ends
// with its host.

import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, isAlive, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { doEverything, HOST_SERVERS, sdkHost } from '../support/sdk-host.ts';
import { call, INITIALIZE, startShim } from '../support/shim.ts';

let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: HOST_SERVERS,
    troupe: { http: { enabled: false }, profiles: { few: { servers: ['echo', 'slow'] } } },
  });
});
afterAll(() => d?.[Symbol.asyncDispose]());

const command = (...words: string[]) => ({
  ...{ command: process.execPath, args: [MAIN, 'connect', ...words], env: d.env, stderr: 'pipe' as const },
});
const host = (...words: string[]) => sdkHost('v1', new StdioV1(command(...words)));

const shim = (...words: string[]) => startShim(d.env, ...words);
const nobody = () => eventually(async () => (await d.status()).sessions === 0);

describe('with a daemon', () => {
  it.each([
    ['v1', StdioV1],
    ['v2', StdioV2],
  ] as const)('a host on SDK %s does everything', async (version, Transport) => {
    await using made = await sdkHost(version, new Transport(command()));
    await doEverything(made);
  });

  it('offers one server under its own names, or a profile', async () => {
    await using one = await host('echo');
    expect((await one.client.listTools()).tools.map(({ name }) => name).sort()).toEqual(['echo', 'raw']);
    await using few = await host('@few');
    const names = (await few.client.listTools()).tools.map(({ name }) => name.split('__')[0]);
    expect(new Set(names)).toEqual(new Set(['echo', 'slow']));
  });

  it('serves two hosts through the same processes', async () => {
    const pids = async () => (await d.status()).servers.map(({ pid }) => pid);
    const before = await pids();
    await using one = await host();
    await using other = await host();
    const [a, b] = await Promise.all([
      ...[one, other].map((each, index) => each.call('echo__echo', { message: `host ${index}` })),
    ]);
    expect([a.content[0].text, b.content[0].text]).toEqual(['host 0', 'host 1']);
    expect(await pids()).toEqual(before);
  });

  it('ends with its host: stdin closes, the session is gone, nothing is left and nothing else was said', async () => {
    await nobody();
    const it = shim();
    it.send(INITIALIZE);
    await it.answer(0);
    expect((await d.status()).sessions).toBe(1);
    it.child.stdin.end();
    expect(await it.exit).toBe(0);
    await nobody();
    expect([await isAlive(it.child.pid as number), it.said()]).toEqual([false, '']);
  });

  it('gives a host that says all at once and closes its answers', async () => {
    const it = shim();
    it.send(INITIALIZE, { method: 'notifications/initialized' }, call(1, 'echo__echo', { message: 'x' }));
    it.child.stdin.end();
    expect(await it.exit).toBe(0);
    expect(it.lines.map(({ id }) => id)).toEqual([0, 1]);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)('leaves no session behind after %s', async (signal) => {
    const it = shim();
    it.send(INITIALIZE);
    await it.answer(0);
    expect((await d.status()).sessions).toBeGreaterThan(0);
    it.child.kill(signal);
    expect(await it.exit).toBe({ SIGTERM: 0, SIGINT: 130, SIGKILL: null }[signal]);
    await nobody();
  });

  it('ends when nobody reads what it says', async () => {
    const it = shim();
    it.send(INITIALIZE);
    await it.answer(0);
    it.child.stdout.destroy();
    it.send({ id: 1, method: 'ping' }, { id: 2, method: 'tools/list' });
    expect(await it.exit).toBe(0);
  });

  it.each([
    [['nobody'], 1, /there is no server nobody/],
    [['@nobody'], 1, /there is no profile @nobody/],
    [['--what'], 2, /no option --what; see `troupe connect --help`/],
    [['a', 'b'], 2, /one server or profile/],
    [['--instance', 'No Name'], 2, /name of an instance/],
  ])('refuses %j with one sentence', async (words, code, why) => {
    const it = shim(...words);
    it.child.stdin.on('error', () => {}); // it may be gone before it reads
    it.send(INITIALIZE);
    expect(await it.exit).toBe(code);
    expect(it.said()).toMatch(why);
    expect(it.said().trim().split('\n')).toHaveLength(1);
    if (code === 1) expect(it.lines).toMatchObject([{ id: 0, error: { message: expect.stringMatching(why) } }]);
  });
});
