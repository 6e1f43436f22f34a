import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NatsClientTransport } from '../../src/nats-transport/transport.ts';
import { type Daemon, daemon, fixture, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;
beforeAll(async () => {
  d = await daemon({ servers: { memo: fixture('resources'), slow: fixture('hangs') } });
});
afterAll(() => d[Symbol.asyncDispose]());

async function enter(principal?: string) {
  const transport = new NatsClientTransport(await d.nats(), { heartbeatMs: 500, ...(principal && { principal }) });
  const client = new Client({ name: 'test', version: '1' });
  const updated: string[] = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.push(params.uri));
  await client.connect(transport);
  let isClosed = false;
  client.onclose = () => {
    isClosed = true;
  };
  const call = (name: string, args: Record<string, unknown> = {}) => client.callTool({ name, arguments: args });
  return { transport, client, updated, call, isClosed: () => isClosed, [Symbol.asyncDispose]: () => client.close() };
}

test.each([undefined, 'alice'])('a session lives through kill -9 of the daemon, as %s', async (principal) => {
  await using it = await enter(principal);
  const id = it.transport.sessionId;
  const { resources } = await it.client.listResources();
  const uri = resources.find(({ name }) => name === 'a')?.uri ?? 'memo://a';
  await it.client.subscribeResource({ uri });
  await it.call('memo__touch', { uri: 'memo://a' });
  await eventually(() => expect(it.updated).toEqual([uri]));

  const sleeping = it.call('slow__sleep', { ms: 60_000 }).catch((error) => error);
  const inFlight = async () => (await d.status()).servers.reduce((sum, each) => sum + each.inFlight, 0);
  await eventually(async () => expect(await inFlight()).toBe(1));
  await d.kill();
  // Said to nobody: it is sent when somebody is there again, and runs once.
  const meanwhile = it.call('memo__echo', { message: 'meanwhile' });
  await d.start();

  expect(await sleeping).toMatchObject({ code: -32011, data: { troupe: { delivery: 'outcome unknown' } } });
  expect((await meanwhile).content).toMatchObject([{ text: 'meanwhile' }]);
  expect(it.transport.sessionId).toBe(id);
  await it.call('memo__touch', { uri: 'memo://a' });
  await eventually(() => expect(it.updated).toEqual([uri, uri]));
  expect(it.isClosed()).toBe(false);
});

test('a session goes on with the other daemon of the state directory when its own is killed', async () => {
  const other = execa(process.execPath, [MAIN, 'up', '--instance', 'b', '--http', '127.0.0.1:0'], {
    ...{ env: d.env, extendEnv: false, reject: false },
  });
  try {
    await eventually(async () => {
      const { stdout } = await d.cli('status', '--json', '--instance', 'b');
      expect(JSON.parse(stdout).daemon.state).toBe('running');
    }, 20_000);
    const clients = await Promise.all(Array.from({ length: 6 }, () => enter()));
    const say = (message: string) => Promise.all(clients.map((each) => each.call('memo__echo', { message })));
    await say('both');
    const ids = clients.map(({ transport }) => transport.sessionId);
    await d.kill();
    for (const { content } of await say('one')) expect(content).toMatchObject([{ text: 'one' }]);
    expect(clients.map(({ transport }) => transport.sessionId)).toEqual(ids);
    await d.start();
    await Promise.all(clients.map(({ client }) => client.close()));
  } finally {
    await d.cli('down', '--instance', 'b');
    await other;
  }
});

test('a session that was ended is over also for a client that still has its id', async () => {
  const it = await enter();
  const { sessionId = '' } = it.transport;
  await it.client.close();
  const refused = await eventually(async () => {
    const reply = await d.request('troupe.rpc', '', { headers: { 'Mcp-Session-Id': sessionId } });
    expect(reply.code).toBe(404);
    return reply;
  });
  expect(refused.data).toMatchObject({
    id: null,
    error: { message: 'there is no such session; initialize a new one' },
  });
});

test('a stranger can neither speak in a session nor take it over', async () => {
  await using it = await enter('alice');
  const { sessionId = '' } = it.transport;
  for (const subject of ['troupe.rpc', 'troupe.as.bob.rpc', 'troupe.as.alice.rpc.memo']) {
    const reply = await d.request(subject, '', { headers: { 'Mcp-Session-Id': sessionId } });
    expect(reply.code).toBe(404);
    expect(reply.headers['Mcp-Session-Subject']).toBeUndefined();
  }
  expect((await it.call('memo__echo', { message: 'still here' })).content).toMatchObject([{ text: 'still here' }]);
});
