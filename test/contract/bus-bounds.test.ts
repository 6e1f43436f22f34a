// What is too long or unreadable for the bus: refused to whoever sends it, answered to whoever sent it, and never a reason to
// lose the connection.

import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { connect, Events, headers } from 'nats';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { bounded, isRefused, MAX_HEADERS, MAX_REPLY_BYTES } from '../../src/bus/bounds.ts';
import { createEvents } from '../../src/bus/events.ts';
import { replies } from '../../src/bus/replies.ts';
import { subjects } from '../../src/bus/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { type RawNats, rawNats } from '../support/raw-nats.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const MAX_PAYLOAD = 64 * 1024;
let nats: TestServer;
let stranger: RawNats;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: MAX_PAYLOAD });
  stranger = await rawNats(nats.port);
});
afterAll(async () => {
  await stranger[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

/** A connection of its own, and how often it was lost. */
async function connection(isBounded = true) {
  const nc = await nats.connect();
  onTestFinished(() => nc.close());
  const [refused, faults]: [string[], unknown[]] = [[], []];
  const seen = { cuts: 0, refused, faults };
  void (async () => {
    for await (const { type } of nc.status()) if (type === Events.Disconnect) seen.cuts += 1;
  })();
  if (isBounded)
    bounded(nc, { onRefused: (why) => void refused.push(why), onFault: (fault) => void faults.push(fault) });
  return { nc, seen };
}

describe('what goes out', () => {
  test.each([
    ['a subject', { subject: 'x'.repeat(4_080) }],
    ['a subject of many bytes', { subject: 'ü'.repeat(2_040) }],
    ['a reply subject', { subject: 'ev.a', reply: `_INBOX.${'r'.repeat(4_080)}` }],
    ['a payload', { subject: 'ev.a', payload: Buffer.alloc(MAX_PAYLOAD + 1) }],
    ['a payload with its headers', { subject: 'ev.a', payload: Buffer.alloc(MAX_PAYLOAD - 10), key: 'k'.repeat(100) }],
    ['a subject with a second line', { subject: 'ev.a 0\r\n\r\nPUB ev.b' }],
    ['a reply subject with a blank', { subject: 'ev.a', reply: '_INBOX.a b' }],
  ])('%s beyond the bounds is refused, and the connection stays', async (_, message) => {
    const { subject, payload = '', reply, key } = message as { subject: string } & Record<string, string>;
    const { nc, seen } = await connection();
    const all = headers();
    if (key) all.set(key, '1');
    const publish = () => nc.publish(subject, payload, { ...(reply && { reply }), ...(key && { headers: all }) });
    expect(publish).toThrow(/was not sent/);
    try {
      publish();
    } catch (error) {
      expect(isRefused(error)).toBe(true);
    }
    await nc.flush();
    expect(seen).toMatchObject({ cuts: 0, faults: [] });
    expect(seen.refused).toHaveLength(2);
  });

  test('also of a subscription, a request, and a response', async () => {
    const { nc, seen } = await connection();
    expect(() => nc.subscribe('x'.repeat(4_090), { callback: () => {} })).toThrow(/was not sent/);
    await expect(nc.request('x'.repeat(4_080))).rejects.toThrow(/was not sent/);
    nc.subscribe('respond', { callback: (_, msg) => void msg.respond(Buffer.alloc(MAX_PAYLOAD + 1)) });
    await nc.flush();
    const { nc: caller } = await connection();
    caller.publish('respond', '', { reply: '_INBOX.x' });
    await eventually(() => expect(seen.faults).toHaveLength(1));
    await nc.flush();
    expect(seen.cuts).toBe(0);
  });

  test('an event that is refused is told once, where it is refused', async () => {
    const { nc, seen } = await connection();
    const troubles: unknown[] = [];
    const nothing = { add: async () => {}, online() {}, offline() {}, dropped: 0, idle: async () => {} };
    const events = createEvents(subjects('t'), nothing, (why) => void troubles.push(why));
    events.online(nc);
    events.progress('r1', '_', { message: 'x'.repeat(MAX_PAYLOAD) });
    events.log({ server: 's', principal: '_' }, 'l'.repeat(4_100), Buffer.from('{}'));
    await nc.flush();
    expect([seen.refused.length, seen.cuts, troubles]).toEqual([2, 0, []]);
  });

  test('what fits goes out as it is', async () => {
    const [{ nc, seen }, { nc: reader }] = [await connection(), await connection()];
    const heard: string[] = [];
    reader.subscribe('>', { callback: (_, { subject }) => void heard.push(subject) });
    await reader.flush();
    const subjects = ['a', `long.${'x'.repeat(3_900)}`, `two.${'ü'.repeat(1_900)}`];
    for (const subject of subjects) nc.publish(subject, Buffer.alloc(MAX_PAYLOAD));
    await nc.flush();
    await eventually(() => expect(heard.filter((each) => !each.startsWith('_'))).toEqual(subjects));
    expect(seen).toEqual({ cuts: 0, refused: [], faults: [] });
  });
});

test('what was published between two brokers does not cut the connection to the second, which takes less', async () => {
  await using first = await natsServer();
  await using road = await roadTo(first.port);
  const nc = await connect({
    servers: `127.0.0.1:${road.port}`,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 10,
    reconnectJitter: 0,
  });
  onTestFinished(() => nc.close());
  const [lost, back]: [string[], string[]] = [[], []];
  void (async () => {
    for await (const { type } of nc.status()) {
      if (type === Events.Disconnect) lost.push(type);
      if (type === Events.Reconnect) back.push(type);
    }
  })();
  bounded(nc, { onRefused: () => {}, onFault: () => {} });
  const second = road.lead(nats.port);
  await second.arrived;
  expect(nc.info).toBeUndefined(); // nobody has said yet how much may be sent
  expect(() => nc.publish('ev.large', Buffer.alloc(MAX_PAYLOAD + 1))).toThrow('DISCONNECT');
  nc.publish('ev.small', 'x');
  second.go();
  await eventually(() => expect(back).toHaveLength(1));
  await nc.flush();
  expect([lost.length, nc.info?.max_payload]).toEqual([1, MAX_PAYLOAD]);
});

/** A road to a broker, which can lead to another one from now on: who travels is cut off, and the next arrives, but hears nothing until told. */
async function roadTo(port: number) {
  let to = port;
  let gate = Promise.resolve();
  let onArrived = (): void => {};
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const away = connectTo(to, '127.0.0.1');
    for (const each of [socket, away]) {
      sockets.add(each);
      each.on('error', () => {}).on('close', () => [socket, away].map((one) => one.destroy()));
    }
    socket.pipe(away);
    onArrived();
    void gate.then(() => away.pipe(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    lead(next: number) {
      to = next;
      let go = (): void => {};
      gate = new Promise((resolve) => {
        go = resolve;
      });
      const arrived = new Promise<void>((resolve) => {
        onArrived = resolve;
      });
      for (const each of sockets) each.destroy();
      return { arrived, go: () => go() };
    },
    async [Symbol.asyncDispose]() {
      for (const each of sockets) each.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('what comes in', () => {
  const BLOCK = (lines: string) => Buffer.from(`NATS/1.0\r\n${lines}\r\n\r\n`);
  const long = (count: number) => `_INBOX.${'r'.repeat(count)}`;

  test.each([
    ['a name of a header with a blank', BLOCK('Bad Key: 1'), /headers cannot be read/],
    ['a name of a header that is not ASCII', BLOCK('ü: 1'), /headers cannot be read/],
    ['a value with a line feed', BLOCK('A: 1\n2'), /headers cannot be read/],
    ['a value with a carriage return', BLOCK('A: 1\r2'), /headers cannot be read/],
    ['a name of 60 kB', BLOCK(`${'K'.repeat(60_000)}: 1`), /headers have 60017 bytes/],
    [
      'many headers',
      BLOCK(Array.from({ length: MAX_HEADERS + 1 }, (_, at) => `k${at}:`).join('\r\n')),
      /more than 100/,
    ],
  ])('%s is answered with one sentence, and not handed on', async (_, block, sentence) => {
    const { nc, seen } = await connection();
    const { nc: caller } = await connection();
    const taken: string[] = [];
    nc.subscribe('svc', { callback: (_, msg) => void taken.push(msg.string()) });
    const answers: { code: string | undefined; text: string }[] = [];
    const take = (text: string, code?: string) => void answers.push({ text, code });
    caller.subscribe('_INBOX.me', {
      callback: (_, msg) => take(msg.string(), msg.headers?.get('Nats-Service-Error-Code')),
    });
    await Promise.all([nc.flush(), caller.flush()]);
    stranger.publish({
      subject: Buffer.from('svc'),
      reply: Buffer.from('_INBOX.me'),
      headers: block,
      body: Buffer.from('a'),
    });
    stranger.publish({ subject: Buffer.from('svc'), body: Buffer.from('b') });
    await stranger.flush();
    await eventually(() => expect(taken).toEqual(['b']));
    await eventually(() => expect(answers).toEqual([{ code: '400', text: expect.stringMatching(sentence) }]));
    expect(seen).toEqual({ cuts: 0, refused: [expect.stringMatching(sentence)], faults: [] });
  });

  test.each([
    [MAX_REPLY_BYTES - 7, ['taken']],
    [MAX_REPLY_BYTES, ['400']],
    [4_050, []],
  ])('a reply subject with %i characters', async (count, expected) => {
    const { nc, seen } = await connection();
    const back = replies(nc);
    const ok = { ok: true, result: Buffer.from('taken'), isError: false } as const;
    nc.subscribe('svc.long', { callback: (_, msg) => void back.stream(msg, () => {}).end(ok) });
    await nc.flush();
    const { nc: caller } = await connection(false);
    const heard: string[] = [];
    caller.subscribe('_INBOX.>', {
      callback: (_, msg) => {
        if (msg.subject === long(count) && msg.data.length > 0)
          heard.push(msg.headers?.get('Nats-Service-Error-Code') || msg.string());
      },
    });
    await caller.flush();
    stranger.publish({ subject: Buffer.from('svc.long'), reply: Buffer.from(long(count)), body: Buffer.alloc(0) });
    await stranger.flush();
    await Promise.all([nc.flush(), caller.flush()]);
    await nc.flush();
    await caller.flush();
    expect(heard).toEqual(expected);
    expect(seen.cuts).toBe(0);
  });

  test.each([
    [true, 1_017, 0],
    [true, 4_065, 0],
    [false, 4_065, 1], // what the bounds are for
  ])(
    'keep-alives, which have a reply subject of their own: bounded is %s, %i characters',
    async (isBounded, count, cuts) => {
      const world = simulatedWorld();
      const { nc, seen } = await connection(isBounded);
      const back = replies(nc, { world });
      const taken: string[] = [];
      nc.subscribe('s', {
        callback(_, msg) {
          taken.push(msg.subject);
          back.stream(msg, () => {});
        },
      });
      nc.subscribe('t', { callback: () => void taken.push('t') });
      await nc.flush();
      stranger.publish({ subject: Buffer.from('s'), reply: Buffer.from(long(count)), body: Buffer.alloc(0) });
      stranger.publish({ subject: Buffer.from('t'), body: Buffer.alloc(0) });
      await stranger.flush();
      await eventually(() => expect(taken).toContain('t'));
      expect(taken.includes('s')).toBe(!isBounded || count < MAX_REPLY_BYTES);
      await world.pass(15_000);
      await nc.flush().catch(() => {}); // it was cut
      await eventually(() => expect(seen.cuts).toBe(cuts));
    },
  );

  test('whoever asked for a stream is told as a stream is, to its end', async () => {
    const { nc } = await connection();
    nc.subscribe('svc', { callback: () => {} });
    const { nc: caller } = await connection();
    const heard: string[] = [];
    caller.subscribe('_INBOX.me', {
      callback: (_, msg) => void heard.push(msg.data.length > 0 ? `${msg.headers?.get('Mcp-Frame')}` : 'end'),
    });
    await Promise.all([nc.flush(), caller.flush()]);
    const block = BLOCK('Bad Key: 1\r\nTroupe-Stream: 1');
    const about = { subject: Buffer.from('svc'), reply: Buffer.from('_INBOX.me'), body: Buffer.alloc(0) };
    stranger.publish({ ...about, headers: block });
    await stranger.flush();
    await eventually(() => expect(heard).toEqual(['error', 'end']));
  });

  test('a reply to a request of ours with headers that cannot be read is no reply', async () => {
    const { nc, seen } = await connection();
    const { nc: other } = await connection(false);
    other.subscribe('asked', {
      callback(_, msg) {
        const reply = Buffer.from(msg.reply ?? '');
        stranger.publish({ subject: reply, headers: BLOCK('Bad Key: 1'), body: Buffer.alloc(0) });
      },
    });
    await other.flush();
    await expect(nc.request('asked', '', { timeout: 200 })).rejects.toThrow('TIMEOUT');
    await nc.flush();
    expect(seen).toMatchObject({ cuts: 0, refused: [expect.stringContaining('headers cannot be read')] });
  });

  test('a subscriber that throws is a fault to report, and the next message is taken', async () => {
    const { nc, seen } = await connection();
    const taken: string[] = [];
    nc.subscribe('bug', {
      callback(_, msg) {
        taken.push(msg.string());
        throw new Error('a bug');
      },
    });
    await nc.flush();
    for (const body of ['1', '2']) stranger.publish({ subject: Buffer.from('bug'), body: Buffer.from(body) });
    await stranger.flush();
    await eventually(() => expect(taken).toEqual(['1', '2']));
    expect(seen).toMatchObject({ cuts: 0, faults: [new Error('a bug'), new Error('a bug')] });
  });
});
