import type { NatsConnection, ServiceInfo } from 'nats';
import { expect, test } from 'vitest';
import {
  countRequest,
  type Endpoint,
  microService,
  newEndpoint,
  type ServiceDescription,
} from '../../src/bus/micro.ts';
import { natsServer } from '../support/nats.ts';

// What the `nats` CLI validates replies with.
const NAME = /^[a-zA-Z0-9_-]+$/;
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

const call = () => newEndpoint('call', 'troupe.call.gh.>', 'troupe');
const tool = (name: string, metadata: Record<string, string> = {}): Endpoint => ({
  ...newEndpoint(name, `troupe.call.gh.x`, 'troupe'),
  metadata: { tool: name, ...metadata },
});

const description = (overrides: Partial<ServiceDescription> = {}): ServiceDescription => ({
  server: 'gh',
  version: () => '1.2.3',
  description: 'The GitHub server',
  metadata: () => ({ troupe: '1', state: 'ready' }),
  endpoints: () => [call()],
  tools: () => [],
  ...overrides,
});

async function all<Item>(items: Promise<AsyncIterable<Item>>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of await items) list.push(item);
  return list;
}
const infoOf = async (nc: NatsConnection, name = 'mcp-gh'): Promise<ServiceInfo> =>
  (await nc.request(`$SRV.INFO.${name}`)).json();

test("is found, described and counted by the client library's own service client", async () => {
  await using server = await natsServer();
  const [door, caller] = [await server.connect(), await server.connect()];
  const endpoint = call();
  const service = microService(door, description({ endpoints: () => [endpoint] }));
  await door.flush();
  const client = caller.services.client({ strategy: 'timer' as never, maxWait: 300 });

  expect(await all(client.ping())).toEqual([
    {
      type: 'io.nats.micro.v1.ping_response',
      name: 'mcp-gh',
      id: service.id,
      version: '1.2.3',
      metadata: { troupe: '1', state: 'ready' },
    },
  ]);
  expect(await all(client.info('mcp-gh', service.id))).toEqual([
    expect.objectContaining({
      type: 'io.nats.micro.v1.info_response',
      description: 'The GitHub server',
      endpoints: [{ name: 'call', subject: 'troupe.call.gh.>', queue_group: 'troupe', metadata: {} }],
    }),
  ]);
  countRequest(endpoint, 1_000);
  countRequest(endpoint, 3_000, '503 gh is not ready');
  const [stats] = await all(client.stats('mcp-gh'));
  expect(stats?.endpoints).toEqual([
    {
      name: 'call',
      subject: 'troupe.call.gh.>',
      queue_group: 'troupe',
      num_requests: 2,
      num_errors: 1,
      last_error: '503 gh is not ready',
      processing_time: 4_000,
      average_processing_time: 2_000,
    },
  ]);
  expect(new Date(stats?.started ?? '').toISOString()).toBe(stats?.started);
});

test('every instance answers for itself, and a stopped one is gone at once', async () => {
  await using server = await natsServer();
  const [door, caller] = [await server.connect(), await server.connect()];
  const [one, two] = [microService(door, description()), microService(door, description())];
  await door.flush();
  const client = caller.services.client({ strategy: 'timer' as never, maxWait: 300 });
  expect((await all(client.ping('mcp-gh'))).map(({ id }) => id).sort()).toEqual([one.id, two.id].sort());
  await one.stop();
  expect((await all(client.ping())).map(({ id }) => id)).toEqual([two.id]);
  await two.stop();
  await expect(caller.request('$SRV.INFO.mcp-gh')).rejects.toThrow('503');
  await expect(caller.request('$SRV.PING')).rejects.toThrow('503');
});

test('tools come and go, and are listed by names that the CLI takes and that differ', async () => {
  await using server = await natsServer();
  const door = await server.connect();
  let tools: Endpoint[] = [];
  microService(door, description({ tools: () => tools }));
  await door.flush();
  expect((await infoOf(door)).endpoints.map(({ name }) => name)).toEqual(['call']);
  tools = ['a/b', 'a_b', 'a.b', 'call', 'é', ''].map((name) => tool(name));
  const { endpoints } = await infoOf(door);
  const names = endpoints.map(({ name }) => name);
  expect(names.every((name) => NAME.test(name))).toBe(true);
  expect(new Set(names).size).toBe(7);
  expect(names[0]).toBe('call');
  expect(names[2]).toBe('a_b'); // the one that needs no change keeps its name
  expect(endpoints.map(({ metadata }) => metadata?.tool)).toEqual([undefined, 'a/b', 'a_b', 'a.b', 'call', 'é', '']);
});

test('more than 256 tools, or a description beyond max_payload, is shortened and says so', async () => {
  await using server = await natsServer({ maxPayload: 16 * 1024 });
  const door = await server.connect();
  let tools = Array.from({ length: 256 }, (_, i) => tool(`t${i}`).name).map((name) =>
    newEndpoint(name, name, 'troupe'),
  );
  let note = '';
  microService(door, description({ tools: () => tools.map((t) => ({ ...t, metadata: { note } })) }));
  await door.flush();
  const shape = async () => {
    const { endpoints, metadata } = await infoOf(door);
    return [endpoints.length, metadata?.tools_truncated];
  };
  tools = tools.slice(0, 50);
  expect(await shape()).toEqual([51, undefined]);
  note = 'x'.repeat(400);
  expect(await shape()).toEqual([1, 'true']);
  note = '';
  tools = Array.from({ length: 257 }, (_, i) => newEndpoint(`${i}`, `${i}`, ''));
  expect(await shape()).toEqual([1, 'true']);
});

test.each([
  ['1.2.3', '1.2.3'],
  ['v2.0', '2.0.0'],
  ['2026.08.31', '2026.8.31'],
  ['1.2.3-beta.1', '1.2.3-beta.1'],
  ['1.0.0-01', '1.0.0'],
  ['1.0.0-rc..1', '1.0.0'],
  ['latest', '0.0.0'],
  ['', '0.0.0'],
])('a server of version %j is described as %s', async (version, expected) => {
  await using server = await natsServer();
  const door = await server.connect();
  const { name } = microService(door, description({ version: () => version, server: 'My Server' }));
  await door.flush();
  expect(name).toMatch(NAME);
  const info = await infoOf(door, name);
  expect(info.version).toBe(expected);
  expect(info.version).toMatch(SEMVER);
});
