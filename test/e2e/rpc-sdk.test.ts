import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { execa } from 'execa';
import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NatsClientTransport, type NatsTransportOptions } from '../../src/nats-transport/transport.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;
let nc: NatsConnection;
beforeAll(async () => {
  d = await daemon({
    servers: {
      memo: fixture('resources'),
      steps: fixture('progress'),
      slow: fixture('hangs'),
      big: fixture('big'),
    },
    troupe: { nats: { maxPayloadBytes: '1MB' }, profiles: { few: { servers: ['memo', 'big'] } } },
  });
  nc = await d.nats();
});
afterAll(() => d[Symbol.asyncDispose]());

const info = { name: 'test', version: '1' };
type Heard = { updated: string[]; logs: unknown[] };

/** Both clients have these methods in common; what they differ in is how they are told of notifications. */
async function v1(options: NatsTransportOptions, heard: Heard) {
  const client = new ClientV1(info);
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.updated.push(params.uri));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.logs.push(params.data));
  await client.connect(new NatsClientTransport(nc, options));
  return {
    client,
    call: (name: string, args: Record<string, unknown>, more: More = {}) =>
      client.callTool({ name, arguments: args }, undefined, more),
  };
}

async function v2(options: NatsTransportOptions, heard: Heard) {
  const client = new ClientV2(info, { versionNegotiation: { mode: 'auto' } });
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.updated.push(params.uri));
  client.setNotificationHandler('notifications/message', ({ params }) => void heard.logs.push(params.data));
  await client.connect(new NatsClientTransport(nc, options));
  return {
    client,
    call: (name: string, args: Record<string, unknown>, more: More = {}) =>
      client.callTool({ name, arguments: args }, more),
  };
}

type More = { onprogress?: (progress: { progress: number }) => void; signal?: AbortSignal };

async function enter(make: typeof v1 | typeof v2, options: NatsTransportOptions = {}) {
  const heard: Heard = { updated: [], logs: [] };
  const { client, call } = await make(options, heard);
  const text = async (name: string, args: Record<string, unknown>) =>
    ((await call(name, args)).content as { text: string }[])[0]?.text ?? '';
  return { client, call, text, heard, [Symbol.asyncDispose]: () => client.close() };
}

describe.each([
  ['v1', v1],
  ['v2', v2],
])('the client of SDK %s over NATS', (_, make) => {
  test('lists and calls the tools of all servers, of one, and of a profile', async () => {
    await using all = await enter(make);
    await eventually(async () => {
      const names = (await all.client.listTools()).tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['memo__echo', 'steps__steps', 'slow__sleep', 'big__big']));
    });
    expect(await all.text('memo__echo', { message: 'hi' })).toBe('hi');
    await using one = await enter(make, { server: 'memo' });
    expect((await one.client.listTools()).tools.map(({ name }) => name)).toContain('touch');
    expect(await one.text('echo', { message: 'ho' })).toBe('ho');
    await using few = await enter(make, { server: '@few' });
    const names = (await few.client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain('big__big');
    expect(names.filter((name) => /^(steps|slow)/.test(name))).toEqual([]);
  });

  test('hears of the progress of its call', async () => {
    await using it = await enter(make, { server: 'steps' });
    const seen: number[] = [];
    await it.call('steps', { count: 4, ms: 60 }, { onprogress: ({ progress }) => void seen.push(progress) });
    expect(seen.length).toBeGreaterThan(1);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
  });

  test('cancels, and the server is told', async () => {
    await using it = await enter(make, { server: 'slow' });
    const before = JSON.parse(await it.text('cancelled', {})).length;
    const stop = new AbortController();
    const sleeping = it.call('sleep', { ms: 60_000 }, { signal: stop.signal });
    await eventually(async () => expect((await d.server('slow')).inFlight).toBe(1));
    stop.abort();
    await expect(sleeping).rejects.toThrow();
    await eventually(async () => expect(JSON.parse(await it.text('cancelled', {}))).toHaveLength(before + 1));
  });

  test('reads, subscribes and is notified, completes, sets its log level', async () => {
    await using it = await enter(make, { server: 'memo' });
    const read = await it.client.readResource({ uri: 'memo://a' });
    expect(read.contents).toMatchObject([{ text: 'the memo memo://a' }]);
    await it.client.subscribeResource({ uri: 'memo://a' });
    await it.call('touch', { uri: 'memo://a' });
    await eventually(() => expect(it.heard.updated).toEqual(['memo://a']));
    const asked = { ref: { type: 'ref/prompt' as const, name: 'greet' }, argument: { name: 'who', value: 'Bo' } };
    expect((await it.client.complete(asked)).completion.values).toEqual(['Bo!']);
    await it.client.setLoggingLevel('error');
    await it.call('log', { level: 'info', text: 'quiet' });
    await it.call('log', { level: 'error', text: 'loud' });
    await eventually(() => expect(it.heard.logs).toEqual(['loud']));
  });

  test('gets 3 MB whole, of a broker that takes 1 MB, and sends 2 MB', async () => {
    expect(nc.info?.max_payload).toBe(2 ** 20);
    await using it = await enter(make, { server: 'big' });
    expect(await it.text('big', { bytes: 3_000_000 })).toBe('x'.repeat(3_000_000));
    const message = 'y'.repeat(2_000_000);
    expect((await it.text('echo', { message })) === message).toBe(true);
  });
});

test('two clients at once see nothing of each other', async () => {
  await using one = await enter(v1, { server: 'memo', principal: 'alice' });
  await using two = await enter(v2, { server: 'memo', principal: 'bob' });
  await using three = await enter(v1, { server: 'memo', principal: 'alice' });
  await one.client.subscribeResource({ uri: 'memo://a' });
  await two.client.subscribeResource({ uri: 'memo://b' });
  const clients = [one, two, three];
  const tagged = clients.flatMap((client, who) =>
    Array.from({ length: 200 }, async (_, n) => [await client.text('echo', { message: `${who}-${n}` }), `${who}-${n}`]),
  );
  for (const [got, wanted] of await Promise.all(tagged)) expect(got).toBe(wanted);
  await one.call('touch', { uri: 'memo://a' });
  await two.call('touch', { uri: 'memo://b' });
  await eventually(() => expect([one.heard.updated, two.heard.updated]).toEqual([['memo://a'], ['memo://b']]));
  expect(three.heard).toEqual({ updated: [], logs: [] });
});

test('a server that is not there is an error at once', async () => {
  await expect(enter(v1, { server: 'nowhere' })).rejects.toThrow('nobody serves troupe.rpc.nowhere');
});

test('the example runs', async () => {
  const { stdout: url } = await d.cli('env', '--json');
  const { NATS_URL } = JSON.parse(url);
  const run = (...args: string[]) =>
    execa(process.execPath, ['examples/mcp-over-nats.mjs', ...args], { cwd: ROOT, env: { NATS_URL }, timeout: 30_000 });
  expect((await run('memo')).stdout.split('\n')).toEqual(expect.arrayContaining(['touch', 'echo', 'hi']));
  expect((await run()).stdout).toContain('big__big');
});
