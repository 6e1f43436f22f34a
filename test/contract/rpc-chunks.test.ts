import { createHash } from 'node:crypto';
import { type Msg, type NatsConnection, headers as newHeaders } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toHeaders } from '../../src/bus/frames.ts';
import { frameJoiner, frameSender } from '../../src/bus/rpc-frames.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { handSessions, openDoor, rawClient } from '../support/rpc.ts';
import { bus, joined } from '../support/rpc-client.ts';

let nats: TestServer;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 8 * 1024 });
});
afterAll(() => nats[Symbol.asyncDispose]());

test('frames of all sizes come out as they went in, in their order, each once', async () => {
  const nc = await nats.connect();
  const [got, broken]: [string[], string[]] = [[], []];
  const join = frameJoiner({
    maxBytes: 2 ** 20,
    onFrame: (frame) => got.push(frame.toString('latin1')),
    onBroken: (why) => broken.push(why),
  });
  nc.subscribe('line', { callback: (_, msg) => join(msg) });
  const sender = frameSender(nc, (body, headers) =>
    nc.publish('line', body, headers ? { headers: toHeaders(headers) } : {}),
  );
  const sizes = [1, 100_000, 7_000, 7_168, 7_169, 2, 8_191, 8_192, 300_000, 3, 4_096 * 25];
  const frames = sizes.map((size, index) => Buffer.alloc(size, 65 + index));
  const settled = await Promise.all(frames.map((frame) => sender.send(frame) ?? true));
  expect(settled).toEqual(sizes.map(() => true));
  await eventually(() => expect(got).toHaveLength(sizes.length));
  expect(got.every((frame, index) => frame === frames[index]?.toString('latin1'))).toBe(true);
  expect(broken).toEqual([]);
});

test('what waits behind a large frame is forgotten when the sender is stopped, and says so', async () => {
  const nc = await nats.connect();
  const sent: number[] = [];
  const sender = frameSender(nc, (body) => void sent.push(body.length));
  const [large, small] = [sender.send(Buffer.alloc(500_000)), sender.send(Buffer.alloc(10))];
  sender.stop();
  expect(await Promise.all([large, small, sender.send(Buffer.alloc(1))])).toEqual([false, false, false]);
  const count = sent.length;
  await nc.flush();
  expect(sent).toHaveLength(count);
  expect(sent).not.toContain(10);
});

const whole = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"${'x'.repeat(9_000)}"}}`);
const digest = `SHA-256=${createHash('sha256').update(whole).digest('base64url')}=`;
type Chunk = { at: string; body: Buffer; size?: number; digest?: string };
const chunks = (count: number): Chunk[] =>
  Array.from({ length: count }, (_, index) => ({
    at: `${index + 1}/${count}`,
    body: whole.subarray(index * 4_000, (index + 1) * 4_000),
    ...(index === 0 && { size: whole.length, digest }),
  }));

function publishChunk(nc: NatsConnection, to: string, chunk: Chunk): void {
  const all = newHeaders();
  all.set('Mcp-Frame', 'chunk');
  all.set('Mcp-Chunk', chunk.at);
  if (chunk.size !== undefined) all.set('Mcp-Size', String(chunk.size));
  if (chunk.digest) all.set('Digest', chunk.digest);
  nc.publish(to, chunk.body, { headers: all });
}

test.each<[string, (series: Chunk[]) => Chunk[], RegExp | undefined]>([
  ['whole', (series) => series, undefined],
  ['twice begun', (series) => [...series.slice(0, 2), ...series], undefined],
  ['with a gap', (series) => series.toSpliced(1, 1), /gap/],
  ['without its beginning', (series) => series.slice(1), undefined],
  ['without its size', ([first, ...rest]) => [{ ...first, size: undefined } as unknown as Chunk, ...rest], /Mcp-Size/],
  ['beyond the limit', ([first, ...rest]) => [{ ...first, size: 70_000 } as Chunk, ...rest], /limit is 65536/],
  ['longer than it says', ([first, ...rest]) => [{ ...first, size: 5_000 } as Chunk, ...rest], /more chunks/],
  ['with another digest', ([first, ...rest]) => [{ ...first, digest: 'SHA-256=x=' } as Chunk, ...rest], /Digest/],
  ['of nonsense', () => [{ at: 'x', body: Buffer.from('y') }], undefined],
])('a series of chunks %s', async (what, change, complaint) => {
  const hand = handSessions();
  const door = await openDoor(nats, hand.sessions, { maxFrameBytes: 65_536 });
  const client = await rawClient(await nats.connect(), 'troupe.rpc.echo');
  client.open();
  await eventually(() => expect(client.subject()).not.toBe(''));
  for (const chunk of change(chunks(3))) publishChunk(client.nc, client.subject(), chunk);
  client.say('');
  client.say({ id: 2, method: 'echo', params: {} });
  const answered = (id: unknown) => heard(client.got).some((frame) => frame.includes(`"id":${id}`));
  await eventually(() => expect(answered(2)).toBe(true));
  const isWhole = what === 'whole' || what === 'twice begun';
  await eventually(() => expect(answered(1)).toBe(isWhole));
  expect(hand.only().methods).toEqual(isWhole ? ['echo', 'echo'] : ['echo']);
  if (complaint) expect(heard(client.got).filter((frame) => complaint.test(frame))).toHaveLength(1);
  else expect(answered('null')).toBe(false);
  await door.close();
});

const heard = (got: Msg[]): string[] => got.map((msg) => msg.string());

describe('messages of the transport that are too large for one of NATS', () => {
  test('arrive whole and in order, both ways', async () => {
    await using stage = await bus({ maxPayload: 64 * 1024 });
    const client = await joined(stage.nc);
    const text = '€'.repeat(500_000);
    await client.send({ id: 1, method: 'echo', params: { text } });
    await client.send({ id: 2, method: 'big', params: { bytes: 3_000_000 } });
    await client.send({ id: 3, method: 'echo', params: {} });
    await eventually(() => expect(client.answers()).toHaveLength(3), 20_000);
    expect(client.answers().map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(client.answers()[0]?.result?.text === text).toBe(true);
    expect(client.answers()[1]?.result?.text).toHaveLength(3_000_000);
    expect(client.errors).toEqual([]);
  });

  test('are sent again whole when the daemon dies in the middle of them', async () => {
    await using stage = await bus({ maxPayload: 64 * 1024 });
    const client = await joined(stage.nc);
    void client.send({ id: 1, method: 'echo', params: { text: 'y'.repeat(2_000_000) } });
    void client.send({ id: 2, method: 'echo', params: { text: 'z' } });
    await stage.door.nc.close();
    await openDoor(stage.nats, stage.sessions);
    await eventually(() => expect(client.answers()).toHaveLength(2), 20_000);
    for (const { error } of client.answers()) expect(error).toBeUndefined();
    expect(stage.only().methods).toEqual(['echo', 'echo']);
  });
});
