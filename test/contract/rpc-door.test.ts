import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { handSessions, openDoor, rawClient } from '../support/rpc.ts';

let nats: TestServer;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 64 * 1024 });
});
afterAll(() => nats[Symbol.asyncDispose]());

type Options = { opener?: string; leaseMs?: number };

/** A door on the broker, and a client with an open session. */
async function opened({ opener = 'troupe.rpc.echo', leaseMs = 60_000 }: Options = {}) {
  const hand = handSessions();
  const door = await openDoor(nats, hand.sessions, { leaseMs });
  const nc = await nats.connect();
  const client = await rawClient(nc, opener);
  client.open();
  await eventually(() => expect(client.subject()).not.toBe(''));
  const [dispose, session] = [door.close, hand.only()];
  return { ...{ door, client, nc, session, ...hand }, [Symbol.asyncDispose]: dispose };
}

const isNobodys = (nc: NatsConnection, subject: string) =>
  eventually(() => expect(nc.request(subject, '', { timeout: 100 })).rejects.toThrow('503'));

describe('opening', () => {
  test('answers initialize with its result, the session and the subject to speak on', async () => {
    await using it = await opened();
    const [first] = it.client.got;
    expect(first?.json()).toMatchObject({ jsonrpc: '2.0', id: 0, result: { serverInfo: { name: 'by-hand' } } });
    expect(first?.headers?.get('Mcp-Session-Id')).toBe(it.session.id);
    expect(first?.headers?.get('Mcp-Session-Subject')).toMatch(/^troupe\.sess\.host-1\.[\w-]{22}$/);
    expect(it.client.subject()).not.toContain(it.session.id);
    expect(it.session).toMatchObject({ principal: '_', scope: 'echo', door: 'rpc', holders: 1 });
  });

  test.each([
    ['troupe.rpc', { principal: '_', scope: '' }],
    ['troupe.as.alice.rpc.echo', { principal: 'alice', scope: 'echo' }],
    ['troupe.as.a=2Eb.rpc', { principal: 'a.b', scope: '' }],
    ['troupe.node.host-1.rpc.echo', { principal: '_', scope: 'echo' }],
  ])('on %s it is of that principal and scope', async (opener, expected) => {
    await using it = await opened({ opener });
    expect(it.session).toMatchObject(expected);
    const tree = expected.principal === '_' ? 'troupe.sess.' : opener.replace(/rpc.*/, 'sess.');
    expect(it.client.subject().startsWith(tree)).toBe(true);
  });

  test.each([
    ['any other request', { id: 'a', method: 'tools/list' }, { id: 'a', error: { code: -32600 } }],
    ['a probe for the newer protocol', { id: 1, method: 'server/discover' }, { id: 1, error: { code: -32601 } }],
    ['a notification', { method: 'notifications/initialized' }, { id: null, error: { code: -32600 } }],
    ['what is no JSON', '{"jsonrpc":', { id: null, error: { code: -32700 } }],
    ['nothing', '', { id: null, error: { code: -32700 } }],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', { id: null, error: { code: -32600 } }],
  ])('refuses %s with a sentence', async (_, body, expected) => {
    await using it = await opened();
    const stranger = await rawClient(it.nc, 'troupe.rpc.echo');
    stranger.ask(body);
    await eventually(() => expect(stranger.frames()).toMatchObject([expected]));
    expect(it.all.size).toBe(1);
  });

  test('answers a ping, with or without a session', async () => {
    await using it = await opened();
    it.client.ask({ id: 'p', method: 'ping' });
    it.client.say({ id: 'q', method: 'ping' });
    await eventually(() =>
      expect(
        it.client
          .frames()
          .slice(1)
          .map(({ id }) => id)
          .sort(),
      ).toEqual(['p', 'q']),
    );
    expect(it.client.frames().every((frame) => 'result' in frame)).toBe(true);
  });

  test('says why a session cannot be had', async () => {
    await using it = await opened();
    const late = await rawClient(it.nc, 'troupe.rpc.full');
    late.open();
    await eventually(() => expect(late.frames()).toMatchObject([{ id: 0, error: { message: 'too many sessions' } }]));
    expect(late.got[0]?.headers?.get('Nats-Service-Error-Code')).toBe('429');
  });

  test('says of an outage of the database that there is one, and not where the database is', async () => {
    await using it = await opened();
    const late = await rawClient(it.nc, 'troupe.rpc.broken');
    late.open();
    const message = 'troupe cannot use its database now; its owner sees why in troupe status';
    await eventually(() => expect(late.frames()).toMatchObject([{ id: 0, error: { code: -32010, message } }]));
    expect(late.got[0]?.headers?.get('Nats-Service-Error')).toBe(message);
  });

  test('serves nobody whose reply subject is no inbox', async () => {
    await using it = await opened();
    const [victim, honest] = [await rawClient(it.nc, 'troupe.rpc.echo', 'orders.delete'), it.client];
    victim.open();
    honest.open();
    await eventually(() => expect(honest.frames()).toHaveLength(2));
    expect(victim.got).toEqual([]);
    expect(it.all.size).toBe(2);
  });
});

describe('a session', () => {
  test('carries requests, what belongs to them and what belongs to none, in order', async () => {
    await using it = await opened();
    it.client.say({ method: 'notifications/initialized' });
    it.client.say({ id: 'x', method: 'steps', params: { n: 1 } });
    it.client.say('{"jsonrpc":"2.0","id":2,"method":"echo","params":{"n":9007199254740993}}');
    await eventually(() => expect(it.client.got).toHaveLength(6));
    for (const send of it.session.attached) send(Buffer.from('{"jsonrpc":"2.0","method":"notifications/x"}\n'));
    await eventually(() => expect(it.client.got).toHaveLength(7));
    const said = it.client.frames().map((frame) => frame.id ?? frame.method);
    const progress = 'notifications/progress';
    expect(said).toEqual([0, progress, progress, progress, 'x', 2, 'notifications/x']);
    expect(it.client.got[5]?.string()).toContain('9007199254740993');
    expect(it.session.methods).toEqual(['notifications/initialized', 'steps', 'echo']);
  });

  test('answers what cannot be read, and goes on', async () => {
    await using it = await opened();
    it.client.say('garbage');
    it.client.say({ id: 1, method: 'initialize', params: {} });
    it.client.say('[{"jsonrpc":"2.0","id":5,"method":"echo"}]');
    it.client.say({ method: 'throws' });
    it.client.say({ id: 6, method: 'throws' });
    it.client.say({ id: 7, method: 'echo' });
    await eventually(() =>
      expect(it.client.frames().slice(1)).toMatchObject([
        { id: null, error: { code: -32700 } },
        { id: 1, error: { code: -32600 } },
        { id: null, error: { code: -32600 } },
        { id: 6, error: { code: -32603 } },
        { id: 7, result: {} },
      ]),
    );
    expect(JSON.stringify(it.client.frames())).not.toContain('a bug');
  });

  test('answers a batch as one where the era has batches', async () => {
    await using it = await opened();
    const old = await rawClient(it.nc, 'troupe.rpc.echo');
    old.open('2025-03-26');
    await eventually(() => expect(old.subject()).not.toBe(''));
    old.say('[{"jsonrpc":"2.0","id":5,"method":"echo"},{"jsonrpc":"2.0","id":6,"method":"echo"}]');
    await eventually(() => expect(old.frames().slice(1)).toMatchObject([[{ id: 5 }, { id: 6 }]]));
  });

  test('is deaf to a stranger on the bare tree who knows its subject', async () => {
    await using it = await opened({ opener: 'troupe.as.alice.rpc.echo' });
    const stranger = await rawClient(it.nc, 'troupe.rpc.echo');
    const token = it.client.subject().split('.').at(-1);
    for (const to of [`troupe.sess.host-1.${token}`, `troupe.as.bob.sess.host-1.${token}`])
      await expect(it.nc.request(to, '{"jsonrpc":"2.0","id":1,"method":"echo"}')).rejects.toThrow('503');
    stranger.ask('', { 'Mcp-Session-Id': it.session.id });
    await eventually(() => expect(stranger.got[0]?.headers?.get('Nats-Service-Error-Code')).toBe('404'));
    expect(it.session.methods).toEqual([]);
  });

  test('is come back to only where it was opened, and only if it is one of NATS', async () => {
    await using it = await opened();
    const elsewhere = await rawClient(it.nc, 'troupe.rpc');
    elsewhere.ask('', { 'Mcp-Session-Id': it.session.id });
    const { session: other } = await it.sessions.open({ ...it.session, door: 'http', params: Buffer.from('{}') });
    it.client.ask('', { 'Mcp-Session-Id': other.id });
    for (const client of [elsewhere, it.client])
      await eventually(() => expect(client.got.at(-1)?.headers?.get('Nats-Service-Error-Code')).toBe('404'));
  });

  test('has one subject at a time', async () => {
    await using it = await opened();
    const before = it.client.subject();
    it.client.ask('', { 'Mcp-Session-Id': it.session.id });
    await eventually(() => expect(it.client.subject()).not.toBe(before));
    await isNobodys(it.nc, before);
    expect(it.session).toMatchObject({ holders: 1, attached: { size: 1 } });
  });

  test('ends when its client says so, and is unknown from then on', async () => {
    await using it = await opened();
    it.client.say('', { 'Mcp-Frame': 'end' });
    await eventually(() => expect(it.all.size).toBe(0));
    expect(it.session).toMatchObject({ holders: 0, attached: new Set() });
    await isNobodys(it.nc, it.client.subject());
    it.client.ask('', { 'Mcp-Session-Id': it.session.id });
    await eventually(() => expect(it.client.got.at(-1)?.headers?.get('Nats-Service-Error-Code')).toBe('404'));
  });
});

describe('a client that is silent', () => {
  test('for the lease is let go, and comes back with its id', async () => {
    await using it = await opened({ leaseMs: 200 });
    it.client.say({ id: 1, method: 'hold' });
    await eventually(() => expect(it.session.held.size).toBe(1));
    const before = it.client.subject();
    await eventually(() => expect(it.session.holders).toBe(0));
    expect(it.session.callers).toEqual(['gone 1']);
    await isNobodys(it.nc, before);
    it.client.ask('', { 'Mcp-Session-Id': it.session.id, 'Mcp-Seq': '17' });
    await eventually(() => expect(it.client.subject()).not.toBe(before));
    // A disconnect is no cancel: what it had asked for is still worked on, and answered where it is now.
    expect(it.client.frames().at(-1)).toEqual({ seen: 17, sent: 0, inFlight: [1] });
    it.session.held.get('1')?.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    await eventually(() => expect(it.client.frames().at(-1)).toMatchObject({ id: 1, result: {} }));
  });

  test('is asked after, and counts as absent while nobody receives that', async () => {
    await using it = await opened();
    const own = await nats.connect();
    const client = await rawClient(own, 'troupe.rpc.echo');
    client.open();
    await eventually(() => expect(client.subject()).not.toBe(''));
    const session = [...it.all.values()].at(-1);
    client.say({ id: 1, method: 'hold' });
    await eventually(() => expect(session?.held.size).toBe(1));
    const line = session?.held.get('1');
    expect(line?.isAbsent?.()).toBe(true);
    await eventually(() => expect(session?.callers).toEqual(['back 1']));
    expect(client.frames().at(-1)).toEqual({ seen: 0, sent: 0, inFlight: [1] });
    const subject = client.subject();
    await own.drain(); // the broker knows by then that nobody receives
    expect(line?.isAbsent?.()).toBe(true);
    // What the broker says of that status has come, and was thought about.
    for (const _ of ['come', 'thought about']) await it.door.nc.flush();
    expect(session?.callers).toEqual(['back 1']);
    it.nc.publish(subject, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    await eventually(() => expect(session?.callers).toEqual(['back 1', 'back 1']));
  });

  test('but for its heartbeats keeps the session, and hears what is worked on', async () => {
    await using it = await opened({ leaseMs: 300 });
    it.client.say({ id: 'a"b', method: 'hold' });
    const until = performance.now() + 900;
    let beats = 0;
    await eventually(() => {
      it.client.say('', { 'Mcp-Frame': 'ka', 'Mcp-Seq': String(++beats) });
      return performance.now() > until;
    });
    expect(it.session.holders).toBe(1);
    await eventually(() => expect(it.client.frames().at(-1)).toEqual({ seen: beats, sent: 0, inFlight: ['a"b'] }));
  });

  test('whose session was ended elsewhere is let go, and finds nobody', async () => {
    await using it = await opened();
    await it.session.end();
    expect(it.session.holders).toBe(0);
    await isNobodys(it.nc, it.client.subject());
  });
});
