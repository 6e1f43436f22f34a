import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import type { NatsConnection } from 'nats';
import { describe, expect, test } from 'vitest';
import { NatsClientTransport } from '../../src/nats-transport/transport.ts';
import { eventually } from '../support/eventually.ts';
import { openDoor } from '../support/rpc.ts';
import { bus, joined } from '../support/rpc-client.ts';

const info = { name: 'test', version: '1' };
async function until(nc: NatsConnection, wanted: string): Promise<void> {
  for await (const { type } of nc.status()) if (type === wanted) return;
}

const unknown = { error: { code: -32011, data: { troupe: { code: 'lost', delivery: 'outcome unknown' } } } };

describe.each([
  ['v1', () => new ClientV1(info)],
  ['v2', () => new ClientV2(info)],
  ['v2, probing for the newest era', () => new ClientV2(info, { versionNegotiation: { mode: 'auto' } })],
])('the client of SDK %s', (_, make) => {
  test('opens a session, uses it and ends it', async () => {
    await using stage = await bus();
    const transport = new NatsClientTransport(stage.nc, { server: 'echo', principal: 'alice' });
    const client = make();
    await client.connect(transport);
    expect(client.getServerVersion()).toMatchObject({ name: 'by-hand' });
    expect(transport.sessionId).toBe(stage.only().id);
    expect(stage.only().principal).toBe('alice');
    await client.ping();
    await client.close();
    await eventually(() => expect(stage.all.size).toBe(0));
    expect(stage.nc.isClosed()).toBe(false);
  });

  test('hears at once that nobody serves such a server', async () => {
    await using stage = await bus();
    const connecting = make().connect(new NatsClientTransport(stage.nc, { server: 'nowhere' }));
    await expect(connecting).rejects.toThrow('nobody serves troupe.rpc.nowhere');
  });
});

describe('when the daemon is gone and comes back', () => {
  test('what was in flight has an unknown outcome, what was not delivered is sent once, the session is the same', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc);
    const { id } = stage.only();
    await client.send({ id: 1, method: 'hold' });
    await client.send({ method: 'notifications/one' });
    await eventually(() => expect(stage.only().methods).toEqual(['hold', 'notifications/one']));
    await stage.door.nc.close();
    await nobodyListens(stage.nc); // what the broker still hands to a closed connection is lost, not undelivered
    for (let n = 2; n < 20; n++) void client.send({ id: n, method: 'echo', params: { n } });
    void client.send({ method: 'notifications/two' });
    await stage.nc.flush();
    await openDoor(stage.nats, stage.sessions);
    await eventually(() => expect(client.answers()).toHaveLength(19));
    expect(client.answers()[0]).toMatchObject({ id: 1, ...unknown });
    expect(client.answers().slice(1)).toMatchObject(
      Array.from({ length: 18 }, (_, n) => ({ id: n + 2, result: { n: n + 2 } })),
    );
    expect(stage.only().methods.slice(2)).toEqual([...Array(18).fill('echo'), 'notifications/two']);
    expect(client.transport.sessionId).toBe(id);
    expect(client.closed()).toBe(0);
  });

  test('it is noticed by a heartbeat when the client has nothing to say, also where somebody listens to everything', async () => {
    await using stage = await bus({ leaseMs: 600 });
    const spy = await stage.nats.connect();
    spy.subscribe('>', { callback: () => {} }); // with it the broker never says that nobody is there
    await spy.flush();
    const client = await joined(stage.nc, { heartbeatMs: 100 });
    await client.send({ id: 1, method: 'hold' });
    await eventually(() => expect(stage.only().held.size).toBe(1));
    await stage.door.nc.close();
    await openDoor(stage.nats, stage.sessions, { leaseMs: 600 });
    await eventually(() => expect(client.answers()).toMatchObject([{ id: 1, ...unknown }]), 15_000);
    await client.send({ id: 2, method: 'echo', params: {} });
    await eventually(() => expect(client.answers()).toHaveLength(2));
  });

  test('a late answer to a request that was given up, or cancelled, is nobody’s', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc);
    await client.send({ id: 1, method: 'hold' });
    await client.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
    await eventually(() => expect(stage.only().methods).toHaveLength(2));
    stage.only().held.get('1')?.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    await client.send({ id: 2, method: 'echo' });
    await eventually(() => expect(client.answers()).toMatchObject([{ id: 2 }]));
  });

  test('a daemon that stops is heard until another takes over: it answers what it still works on', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc, { heartbeatMs: 50 });
    await client.send({ id: 1, method: 'hold' });
    await eventually(() => expect(stage.only().held.size).toBe(1));
    await stage.door.close();
    const waiting = client.send({ id: 2, method: 'echo', params: {} });
    await stage.nc.flush();
    stage.only().held.get('1')?.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"n":1}}\n'));
    await eventually(() => expect(client.answers()).toMatchObject([{ id: 1, result: { n: 1 } }]));
    await openDoor(stage.nats, stage.sessions);
    await waiting;
    await eventually(() => expect(client.answers()).toMatchObject([{ id: 1 }, { id: 2, result: {} }]));
  });

  test('what the daemon that was left still says is not heard', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc);
    await client.send({ id: 1, method: 'hold' });
    await eventually(() => expect(stage.only().held.size).toBe(1));
    await stage.door.close();
    const next = await openDoor(stage.nats, stage.sessions);
    await client.send({ id: 2, method: 'echo', params: {} });
    await eventually(() => expect(client.answers()).toMatchObject([{ id: 1, ...unknown }, { id: 2 }]));
    stage.only().held.get('1')?.tell(Buffer.from('{"jsonrpc":"2.0","method":"notifications/late"}\n'));
    await stage.door.nc.flush();
    for (const send of stage.only().attached) send(Buffer.from('{"jsonrpc":"2.0","method":"notifications/now"}\n'));
    await next.nc.flush();
    await eventually(() => expect(client.messages.at(-1)?.method).toBe('notifications/now'));
    expect(client.messages.map(({ method }) => method)).not.toContain('notifications/late');
  });

  test('the client closes when its session has ended meanwhile', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc);
    await stage.door.close();
    stage.all.clear();
    await openDoor(stage.nats, stage.sessions);
    const sending = client.send({ id: 1, method: 'echo' });
    await eventually(() => expect(client.closed()).toBe(1));
    await sending;
    expect(client.errors).toEqual(['the session is over; connect again']);
    await expect(client.send({ id: 2, method: 'echo' })).rejects.toThrow('connect again');
  });

  test('the client closes when nobody takes the session over', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc, { patienceMs: 300 });
    await stage.door.close();
    await client.send({ id: 1, method: 'echo' });
    await eventually(() => expect(client.closed()).toBe(1));
    expect(client.errors).toEqual(['nobody took the session over within 300 ms']);
  });
});

describe('when the broker is gone and comes back', () => {
  test('requests go on that the daemon still works on, those that were lost end, and losses are told', async () => {
    await using stage = await bus();
    const client = await joined(stage.nc);
    await client.send({ id: 1, method: 'hold' });
    await client.send({ id: 2, method: 'hold' });
    await eventually(() => expect(stage.only().held.size).toBe(2));
    const [one, two] = [stage.only().held.get('1'), stage.only().held.get('2')];
    const disconnected = until(stage.nc, 'disconnect');
    await stage.nats.kill();
    await disconnected;
    two?.answer(Buffer.from('{"jsonrpc":"2.0","id":2,"result":{}}\n')); // into the void
    const waiting = client.send({ id: 3, method: 'echo', params: {} });
    await stage.nats.restart();
    await waiting;
    await eventually(
      () =>
        expect(
          client
            .answers()
            .map(({ id }) => id)
            .sort(),
        ).toEqual([2, 3]),
      20_000,
    );
    expect(client.answers().find(({ id }) => id === 2)).toMatchObject(unknown);
    expect(client.answers().find(({ id }) => id === 3)).toMatchObject({ result: {} });
    // Whichever of the two comes first to the new broker: a loss is counted, or the session was interrupted.
    expect(client.errors.join()).toMatch(/1 messages of the session were lost|notifications .* may be lost/);
    one?.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    await eventually(() => expect(client.answers()).toHaveLength(3));
    expect(client.answers().at(-1)).toMatchObject({ id: 1, result: {} });
    expect(client.closed()).toBe(0);
  });
});

test('a transport ends with its connection', async () => {
  await using stage = await bus();
  const client = await joined(stage.nc);
  await stage.nc.close();
  await eventually(() => expect(client.closed()).toBe(1));
  await client.transport.close();
  expect(client.closed()).toBe(1);
});

test('clients that came and went leave nothing behind, with or without a goodbye', async () => {
  await using stage = await bus({ leaseMs: 200 });
  const rude = await stage.nats.connect();
  for (let n = 0; n < 50; n++) {
    await joined(rude);
    await (await joined(stage.nc)).transport.close();
  }
  expect(stage.all.size).toBeGreaterThan(49);
  await rude.close();
  await eventually(() => expect(stage.door.count()).toBe(0));
  for (const session of stage.all.values()) expect(session).toMatchObject({ holders: 0, attached: { size: 0 } });
});

/** Resolves when the broker knows that the door is gone. */
const nobodyListens = (nc: NatsConnection) =>
  eventually(() =>
    nc.request('troupe.rpc.echo', '', { timeout: 200 }).then(
      () => false,
      ({ code }) => code === '503',
    ),
  );
