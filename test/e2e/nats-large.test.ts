// Results and arguments that do not fit into one message of the bus: in chunks, as an object, or refused with a word on
// where the result lies. Whichever way, it is whole.

import type { Msg } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, digestOf, header, joined, kindOf } from '../support/ask.ts';
import { type Daemon, daemon, fixture, replyOf } from '../support/daemon.ts';

const MB = 2 ** 20;
const CALL = 'troupe.call.big.big';
let d: Daemon;

beforeAll(async () => {
  const roomy = { maxFrameBytes: '64MB' };
  d = await daemon({
    servers: { big: fixture('big', roomy), echo: fixture('echo', roomy) },
    troupe: { nats: { maxPayloadBytes: '1MB' } },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const resultOf = (bytes: number) =>
  Buffer.from(JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(bytes) }] }));
const stored = async (object: string) => {
  const store = await (await d.nats()).jetstream().views.os('troupe_blobs');
  return Buffer.from((await store.getBlob(object)) ?? []);
};
const isSame = (bytes: Uint8Array, size: number) => Buffer.compare(bytes, resultOf(size)) === 0;

describe('a result that fits', () => {
  it('is one plain reply, whatever the caller accepts', async () => {
    const asked = ask(await d.nats(), CALL, { bytes: 500_000 }, { 'Troupe-Accept': 'chunk,object' });
    await asked.atLeast(1);
    await d.request('troupe.call.echo.echo', { message: 'more of it would have come before this' });
    expect(asked.messages.map(kindOf)).toEqual(['plain']);
    expect(isSame(asked.messages[0]?.data ?? Buffer.alloc(0), 500_000)).toBe(true);
  });
});

describe('a result that does not fit', () => {
  it.each([3 * MB, 20 * MB])('of %i bytes comes in chunks to who accepts them', async (bytes) => {
    const asked = ask(await d.nats(), CALL, { bytes }, { 'Troupe-Accept': 'chunk' });
    const messages = await asked.toTheEnd(30_000);
    const chunks = messages.slice(0, -1);
    expect(new Set(chunks.map(kindOf))).toEqual(new Set(['chunk']));
    expect(Math.max(...chunks.map((chunk) => chunk.data.length))).toBeLessThanOrEqual(MB / 2);
    const places = chunks.map((chunk) => [header(chunk, 'Mcp-Seq'), header(chunk, 'Mcp-Chunk')]);
    expect(places).toEqual(chunks.map((_, i) => [`${i + 1}`, `${i + 1}/${chunks.length}`]));
    const whole = joined(messages);
    expect(header(messages[0], 'Mcp-Size')).toBe(String(whole.length));
    expect(header(messages[0], 'Digest')).toBe(digestOf(whole));
    expect(isSame(whole, bytes)).toBe(true);
    expect(messages.at(-1)?.headers).toBeUndefined();
  });

  it('comes in chunks within a stream, numbered on from its other frames', async () => {
    const wanted = { 'Troupe-Accept': 'chunk', 'Troupe-Stream': '1' };
    const frames = await ask(await d.nats(), CALL, { bytes: 2 * MB }, wanted).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['ack', 'chunk', 'chunk', 'chunk', 'chunk', 'chunk', 'end']);
    expect(frames.slice(0, -1).map((frame) => Number(header(frame, 'Mcp-Seq')))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(isSame(joined(frames), 2 * MB)).toBe(true);
  });

  it('lies in the object store for who accepts that', async () => {
    const headers = { 'Troupe-Accept': 'object' };
    const { data, headers: said, code } = await d.request(CALL, { bytes: 3 * MB }, { headers });
    expect(code).toBeUndefined();
    expect(data).toEqual({ bucket: 'troupe_blobs', object: expect.stringMatching(/^[\w-]{22}$/), ...factsOf(3 * MB) });
    expect(said).toMatchObject({ 'Troupe-Object': `troupe_blobs/${data.object}`, Digest: factsOf(3 * MB).digest });
    expect(isSame(await stored(data.object), 3 * MB)).toBe(true);
  });

  it('is refused with 413 to who accepts neither, and can be fetched', async () => {
    const { code, error, data, headers } = await d.request(CALL, { bytes: 3 * MB });
    expect(code).toBe(413);
    expect(error).toMatch(/^The result has \d+ bytes, too many for one message; fetch the object/);
    expect(headers['Troupe-Object']).toBe(`troupe_blobs/${data.object}`);
    expect(isSame(await stored(data.object), 3 * MB)).toBe(true);
  });
});

describe('arguments that do not fit', () => {
  const put = async (bytes: Uint8Array) => {
    const store = await (await d.nats()).jetstream().views.os('troupe_blobs');
    return `troupe_blobs/${(await store.putBlob({ name: `arguments-${bytes.length}` }, bytes)).name}`;
  };

  it('are read from the object that Troupe-Object names', async () => {
    const message = 'y'.repeat(5 * MB);
    const object = await put(Buffer.from(JSON.stringify({ message })));
    const wanted = { 'Troupe-Object': object, 'Troupe-Accept': 'chunk' };
    const messages = await ask(await d.nats(), 'troupe.call.echo.echo', '', wanted).toTheEnd(20_000);
    expect(JSON.parse(joined(messages).toString()).content[0].text === message).toBe(true);
  });

  it.each([
    ['troupe_blobs/nothing', /There is no object troupe_blobs\/nothing/],
    ['other/secret', /must be troupe_blobs/],
    ['troupe_blobs', /must be troupe_blobs/],
  ])('named as %s are refused with 400', async (object, sentence) => {
    const reply = await d.request('troupe.call.echo.echo', '', { headers: { 'Troupe-Object': object } });
    expect([reply.code, reply.error]).toEqual([400, expect.stringMatching(sentence)]);
  });

  it('that are no JSON object are refused, object or not', async () => {
    const asked = ask(await d.nats(), 'troupe.call.echo.echo', '', { 'Troupe-Object': await put(Buffer.from('[]')) });
    const [refused] = await asked.atLeast(1);
    expect(replyOf(refused as Msg).code).toBe(400);
  });
});

function factsOf(bytes: number): { size: number; digest: string } {
  const whole = resultOf(bytes);
  return { size: whole.length, digest: digestOf(whole) };
}
