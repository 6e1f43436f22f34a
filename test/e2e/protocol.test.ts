// A call in flight over NATS: its progress, its timeouts and its cancellation, each as the server sees it and as the
// caller does.

import { createInbox, headers } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, type Reply, replyOf } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      progress: fixture('progress'),
      limited: fixture('progress', { timeoutMs: 800, maxTimeoutMs: 1_500 }),
      sleepy: fixture('hangs', { share: 'all' }),
      single: fixture('hangs', { maxInFlight: 1 }),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

type Caught = { replies: Reply[]; progress: any[]; log: string[] };

/** Publishes a request and catches what its caller sees: replies and progress, in the order in which they came. */
async function send(subject: string, body: object, id: string, more: Record<string, string> = {}): Promise<Caught> {
  const nc = await d.nats();
  const caught: Caught = { replies: [], progress: [], log: [] };
  const reply = createInbox();
  nc.subscribe(reply, {
    callback: (_, msg) => {
      caught.replies.push(replyOf(msg));
      caught.log.push('reply');
    },
  });
  nc.subscribe(`troupe.ev.progress.${id}`, {
    callback: (_, msg) => {
      caught.progress.push(msg.json());
      caught.log.push('progress');
    },
  });
  const all = headers();
  all.set('Troupe-Request-Id', id);
  for (const [key, value] of Object.entries(more)) all.set(key, value);
  nc.publish(subject, JSON.stringify(body), { reply, headers: all });
  await nc.flush();
  return caught;
}
const answered = (...all: Caught[]) => eventually(() => all.every(({ replies }) => replies.length > 0), 15_000);
const cancelledAt = async (server: string): Promise<any[]> =>
  (await d.request(`troupe.call.${server}.cancelled`)).data.structuredContent.value;
const atServer = (server: string, count: number) => eventually(async () => (await d.server(server)).inFlight === count);

test('progress reaches its own caller only, always increases, and ends with the answer', async () => {
  const [a, b] = await Promise.all([
    send('troupe.call.progress.steps', { count: 5, ms: 60 }, 'steps-a'),
    send('troupe.call.progress.steps', { count: 4, ms: 70 }, 'steps-b'),
  ]);
  await answered(a, b);
  await d.request('troupe.call.progress.echo', { message: 'what was still under way is here now' });
  for (const [{ progress, log, replies }, total] of [
    [a, 5],
    [b, 4],
  ] as const) {
    expect(replies).toHaveLength(1);
    expect(log.at(-1)).toBe('reply');
    expect(progress.length).toBeGreaterThan(1);
    const steps = progress.map((each) => each.progress);
    expect(steps).toEqual([...new Set(steps)].sort((x, y) => x - y));
    expect(progress.at(-1)).toMatchObject({ progress: total, total, message: `step ${total}` });
    for (const each of progress) expect(each.message).toBe(`step ${each.progress}`); // neither backwards nor after
  }
});

test('each call has a progress token of its own at the server, whatever the caller put there', async () => {
  const body = { arguments: { count: 1 }, _meta: { progressToken: 'the same', other: 1 } };
  const replies = await Promise.all([1, 2, 3].map(() => d.request('troupe.call.progress.steps', body)));
  const tokens = replies.map(({ data }) => data.structuredContent.value.token);
  expect(new Set(tokens).size).toBe(3);
  for (const token of tokens) expect(token).toBeTypeOf('number');
});

test('a thousand steps at once are told at a pace that can be read, the last one included', async () => {
  const caught = await send('troupe.call.progress.steps', { count: 1_000 }, 'thousand');
  await answered(caught);
  expect(caught.progress.length).toBeLessThan(100);
  expect(caught.progress.at(-1)).toMatchObject({ progress: 1_000 });
});

test('progress gives a call more time, up to the maximum; without it the timeout holds', async () => {
  const timeout = { 'Troupe-Timeout': '800' };
  const [moving, endless, still] = await Promise.all([
    send('troupe.call.progress.steps', { count: 20, ms: 80 }, 'moving', timeout),
    send('troupe.call.limited.steps', { count: 100, ms: 80 }, 'endless'),
    send('troupe.call.sleepy.sleep', { ms: 60_000 }, 'still', { 'Troupe-Timeout': '300ms' }),
  ]);
  await answered(moving, endless, still);
  expect(moving.replies[0]?.code).toBeUndefined(); // it took twice its timeout
  expect(endless.replies[0]).toMatchObject({ code: 408, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
  expect(endless.replies[0]?.error).toContain('did not answer steps within 1500 ms');
  expect(still.replies[0]).toMatchObject({ code: 408, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
  expect(still.replies[0]?.error).toContain('did not answer sleep within 300 ms');
  await eventually(async () => expect(await cancelledAt('sleepy')).toHaveLength(1));
  expect((await cancelledAt('sleepy'))[0]).toMatchObject({ requestId: expect.any(Number) });
});

test('a call is cancelled by its id: the server hears it, the caller gets 499, once', async () => {
  const before = (await cancelledAt('sleepy')).length;
  const caught = await send('troupe.call.sleepy.sleep', { ms: 60_000 }, 'to-cancel');
  await atServer('sleepy', 1);
  const nc = await d.nats();
  for (let time = 0; time < 3; time++) nc.publish('troupe.cancel.to-cancel');
  await answered(caught);
  expect(caught.replies[0]).toMatchObject({
    code: 499,
    data: { code: -32014, data: { troupe: { code: 'cancelled', delivery: 'outcome unknown' } } },
  });
  await eventually(async () => expect(await cancelledAt('sleepy')).toHaveLength(before + 1));
  expect((await cancelledAt('sleepy')).at(-1)).toMatchObject({ reason: 'the caller cancelled it' });
  expect(caught.replies).toHaveLength(1);
  expect(await d.server('sleepy')).toMatchObject({ inFlight: 0, state: 'ready' });
});

test('nobody else can cancel a call, neither another principal nor the bare tree', async () => {
  const nc = await d.nats();
  const before = (await cancelledAt('sleepy')).length;
  const mine = await send('troupe.call.sleepy.sleep', { ms: 60_000 }, 'guarded');
  const bobs = await send('troupe.as.bob.call.sleepy.sleep', { ms: 60_000 }, 'guarded-too');
  await atServer('sleepy', 2);
  nc.publish('troupe.as.bob.cancel.guarded');
  nc.publish('troupe.as.alice.cancel.guarded-too');
  nc.publish('troupe.cancel.guarded-too');
  await nc.flush();
  expect((await d.request('troupe.call.sleepy.echo', { message: 'still here' })).data.content[0].text).toBe(
    'still here',
  );
  expect([mine.replies, bobs.replies]).toEqual([[], []]);
  expect(await cancelledAt('sleepy')).toHaveLength(before);
  nc.publish('troupe.as.bob.cancel.guarded-too');
  nc.publish('troupe.cancel.guarded');
  await answered(mine, bobs);
  expect([mine.replies[0]?.code, bobs.replies[0]?.code]).toEqual([499, 499]);
});

test('a call that still waits is cancelled without a word to the server', async () => {
  const running = await send('troupe.call.single.sleep', { ms: 60_000 }, 'running');
  const waiting = await send('troupe.call.single.sleep', { ms: 60_000 }, 'waiting');
  await eventually(async () => expect(await d.server('single')).toMatchObject({ inFlight: 1, queued: 1 }));
  const nc = await d.nats();
  nc.publish('troupe.cancel.waiting');
  await answered(waiting);
  expect(waiting.replies[0]).toMatchObject({ code: 499, data: { data: { troupe: { delivery: 'not sent' } } } });
  nc.publish('troupe.cancel.running');
  await answered(running);
  expect(await cancelledAt('single')).toHaveLength(1);
});

test('a request id is free again once its call has ended, however it ended', async () => {
  const options = { headers: { 'Troupe-Request-Id': 'reused' } };
  for (const subject of ['troupe.call.sleepy.nothing', 'troupe.call.sleepy.nothing', 'troupe.read.sleepy'])
    expect((await d.request(subject, { uri: 'memo://a' }, options)).code).toBe(404);
  const first = await send('troupe.call.sleepy.sleep', { ms: 60_000 }, 'reused');
  await atServer('sleepy', 1);
  const second = await d.request('troupe.call.sleepy.echo', { message: 'hi' }, options);
  expect(second).toMatchObject({ code: 400, error: expect.stringContaining('reused is in flight; use another id') });
  (await d.nats()).publish('troupe.cancel.reused');
  await answered(first);
  expect((await d.request('troupe.call.sleepy.echo', { message: 'hi' }, options)).code).toBeUndefined();
});
