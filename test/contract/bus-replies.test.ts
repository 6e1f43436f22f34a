import { createHash } from 'node:crypto';
import { headers, type Msg, type NatsConnection, RequestStrategy } from 'nats';
import { describe, expect, test } from 'vitest';
import { BUCKET } from '../../src/bus/blobs.ts';
import { type Replies, type ReplyOptions, replies } from '../../src/bus/replies.ts';
import { isInbox } from '../../src/bus/subjects.ts';
import type { Outcome } from '../../src/calls/call.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';

const ok = (result: string | Buffer, isError = false): Outcome => ({ ok: true, result: Buffer.from(result), isError });
const big = (bytes: number) => Buffer.from(JSON.stringify({ text: 'x'.repeat(bytes) }));
const withHeaders = (entries: Record<string, string>) => {
  const all = headers();
  for (const [key, value] of Object.entries(entries)) all.set(key, value);
  return all;
};
const header = (msg: Msg | undefined, key: string) => msg?.headers?.get(key);

type Bus = AsyncDisposable & { caller: NatsConnection; door: NatsConnection; back: Replies };
type Handler = (msg: Msg, back: Replies) => unknown;

/** A caller and a door on a server of their own; the door hands each request on `svc` to the handler. */
async function bus(handler: Handler, server = {}, options: ReplyOptions = {}): Promise<Bus> {
  const nats = await natsServer({ maxPayload: 64 * 1024, ...server });
  const [caller, door] = [await nats.connect(), await nats.connect()];
  const back = replies(door, options);
  door.subscribe('svc', { callback: (_, msg) => void handler(msg, back) });
  await door.flush();
  return { caller, door, back, [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose]() };
}

async function many(caller: NatsConnection, entries: Record<string, string>): Promise<Msg[]> {
  const options = { strategy: RequestStrategy.SentinelMsg, maxWait: 10_000, headers: withHeaders(entries) };
  const all: Msg[] = [];
  for await (const msg of await caller.requestMany('svc', '{}', options)) if (!(msg instanceof Error)) all.push(msg);
  return all;
}

describe('a plain request', () => {
  test('gets the result as it came, without headers', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok('{"n":12345678901234567890}')));
    const reply = await it.caller.request('svc');
    expect(reply.string()).toBe('{"n":12345678901234567890}');
    expect(reply.headers).toBeUndefined();
  });

  test('is told by a header that the tool itself reports an error', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok('{"isError":true}', true)));
    expect(header(await it.caller.request('svc'), 'Mcp-Is-Error')).toBe('true');
  });

  test('gets a failure as service error headers and a JSON-RPC error object', async () => {
    const message = `Broken\r\nNats-Service-Error-Code: 200 ${'y'.repeat(300)}`;
    await using it = await bus((msg, back) =>
      back.answer(msg, { ok: false, failure: { code: 'unavailable', delivery: 'not sent', message, server: 'gh' } }),
    );
    const reply = await it.caller.request('svc');
    expect(header(reply, 'Nats-Service-Error-Code')).toBe('503');
    expect(header(reply, 'Nats-Service-Error')).toMatch(/^Broken Nats-Service-Error-Code: 200 y+$/);
    expect(header(reply, 'Nats-Service-Error')).toHaveLength(200);
    expect(header(reply, 'Mcp-Error-Code')).toBe('-32010');
    expect(reply.json()).toMatchObject({ code: -32010, message, data: { troupe: { delivery: 'not sent' } } });
  });

  test('with a reply subject that is no inbox is not answered at all', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok('{}')));
    expect(['_INBOX.a', '_INBOX_alice.b', '_R_.x'].every(isInbox)).toBe(true);
    expect(['troupe.call.a.b', '_INBOXED', '$JS.API.STREAM.DELETE.X'].some(isInbox)).toBe(false);
    const heard: string[] = [];
    it.caller.subscribe('>', { callback: (_, msg) => void heard.push(msg.subject) });
    it.caller.publish('svc', '{}', { reply: 'victim.delete' });
    it.caller.publish('svc', '{}', { reply: '_INBOX.mine' });
    await eventually(() => expect(heard).toContain('_INBOX.mine'));
    expect(heard).not.toContain('victim.delete');
  });
});

describe('a result too large for one message', () => {
  const whole = big(500_000);
  const digest = createHash('sha256').update(whole).digest('base64url');

  test('comes in numbered chunks to who accepts them, then an empty message', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok(whole)));
    const all = await many(it.caller, { 'Troupe-Accept': 'object, chunk' });
    const chunks = all.slice(0, -1);
    expect(Buffer.concat(chunks.map((msg) => msg.data)).equals(whole)).toBe(true);
    expect(chunks.map((msg) => header(msg, 'Mcp-Seq'))).toEqual(chunks.map((_, i) => String(i + 1)));
    expect(chunks.map((msg) => header(msg, 'Mcp-Chunk'))).toEqual(chunks.map((_, i) => `${i + 1}/${chunks.length}`));
    expect(new Set(chunks.map((msg) => header(msg, 'Mcp-Frame')))).toEqual(new Set(['chunk']));
    expect([header(chunks[0], 'Mcp-Size'), header(chunks[0], 'Digest')]).toEqual([
      `${whole.length}`,
      `SHA-256=${digest}=`,
    ]);
    expect([all.at(-1)?.data.length, all.at(-1)?.headers]).toEqual([0, undefined]);
  });

  test('lies in the object store for who accepts an object', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok(whole, true)), { jetstream: true });
    const reply = await it.caller.request('svc', '{}', {
      timeout: 5_000,
      headers: withHeaders({ 'Troupe-Accept': 'object' }),
    });
    const [bucket, name = ''] = header(reply, 'Troupe-Object')?.split('/') ?? [];
    expect(bucket).toBe(BUCKET);
    expect([header(reply, 'Mcp-Is-Error'), header(reply, 'Digest')]).toEqual(['true', `SHA-256=${digest}=`]);
    const store = await it.caller.jetstream().views.os(BUCKET);
    expect(Buffer.from((await store.getBlob(name)) ?? []).equals(whole)).toBe(true);
    expect((await store.status()).ttl).toBe(600e9);
  });

  test('is a 413 that says where it lies for who accepts neither', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok(whole)), { jetstream: true });
    const reply = await it.caller.request('svc', '{}', { timeout: 5_000 });
    expect(header(reply, 'Nats-Service-Error-Code')).toBe('413');
    const { bucket, object, size } = reply.json<{ bucket: string; object: string; size: number; digest: string }>();
    expect([bucket, size]).toEqual([BUCKET, whole.length]);
    expect((await (await it.caller.jetstream().views.os(bucket)).getBlob(object))?.length).toBe(whole.length);
  });

  test('is a 413 with a sentence where there is no JetStream, and chunks if those are accepted', async () => {
    await using it = await bus((msg, back) => back.answer(msg, ok(whole)));
    const reply = await it.caller.request('svc', '{}', {
      timeout: 5_000,
      headers: withHeaders({ 'Troupe-Accept': 'object' }),
    });
    expect(header(reply, 'Nats-Service-Error-Code')).toBe('413');
    expect(reply.json<{ message: string }>().message).toContain('Troupe-Accept: chunk');
  });
});

describe('a stream', () => {
  test('has an ack, signals and the result as numbered frames, then the end', async () => {
    await using it = await bus((msg, back) => {
      const stream = back.stream(msg, () => {});
      stream.ack('r1');
      stream.signal({ type: 'progress', progress: 1, total: 2 });
      stream.signal({ type: 'log', level: 'info', params: Buffer.from('{"level":"info","data":1}') });
      stream.signal({ type: 'log', level: 'info', params: big(100_000) });
      stream.signal({ type: 'progress', progress: 1.5, message: 'x'.repeat(100_000) });
      void stream.end(ok('{"content":[]}'));
      stream.signal({ type: 'progress', progress: 2 });
    });
    const all = await many(it.caller, { 'Troupe-Stream': '1' });
    expect(all.map((msg) => `${header(msg, 'Mcp-Seq')} ${header(msg, 'Mcp-Frame')} ${msg.string()}`)).toEqual([
      '1 ack {"requestId":"r1"}',
      '2 progress {"progress":1,"total":2}',
      '3 log {"level":"info","data":1}',
      expect.stringMatching(/^4 log .*too large for the bus/),
      '5 progress {"progress":1.5}',
      '6 result {"content":[]}',
      'undefined undefined ',
    ]);
  });

  test('ends a failure with an error frame, a large result with chunks', async () => {
    const failure = { code: 'timeout', delivery: 'outcome unknown', message: 'Too slow.' } as const;
    const outcomes: Outcome[] = [{ ok: false, failure }, ok(big(200_000))];
    await using it = await bus((msg, back) => back.stream(msg, () => {}).end(outcomes.shift() as Outcome));
    const failed = await many(it.caller, { 'Troupe-Stream': '1' });
    expect(failed.map((msg) => header(msg, 'Mcp-Frame'))).toEqual(['error', undefined]);
    expect(header(failed[0], 'Nats-Service-Error-Code')).toBe('408');
    const chunked = await many(it.caller, { 'Troupe-Stream': '1', 'Troupe-Accept': 'chunk' });
    expect(Buffer.concat(chunked.map((msg) => msg.data)).equals(big(200_000))).toBe(true);
  });

  test('stays alive with frames that are not empty, and notices when nobody listens any more', async () => {
    const gone: string[] = [];
    await using it = await bus((msg, back) => back.stream(msg, () => gone.push('gone')), {}, { keepAliveMs: 20 });
    const frames: string[] = [];
    const inbox = it.caller.subscribe('_INBOX.mine', {
      callback: (_, msg) => void frames.push(`${header(msg, 'Mcp-Frame')} ${msg.string()}`),
    });
    it.caller.publish('svc', '{}', { reply: '_INBOX.mine' });
    await eventually(() => expect(frames.length).toBeGreaterThan(2));
    expect(new Set(frames)).toEqual(new Set(['ka {}']));
    expect(gone).toEqual([]);
    inbox.unsubscribe();
    await eventually(() => expect(gone).toEqual(['gone']));
  });
});
