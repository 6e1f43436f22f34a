import { headers, type Msg } from 'nats';
import { expect, test } from 'vitest';
import { BUCKET } from '../../src/bus/blobs.ts';
import { replies } from '../../src/bus/replies.ts';
import { sentence } from '../../src/protocol/failures.ts';
import { natsServer } from '../support/nats.ts';

async function echo(jetstream: boolean) {
  const server = await natsServer({ jetstream, maxPayload: 64 * 1024 });
  const [caller, door] = [await server.connect(), await server.connect()];
  const back = replies(door, { maxRequestBytes: 300_000 });
  const size = async (msg: Msg) => msg.respond(String((await back.requestBody(msg)).length));
  const callback = (_: unknown, msg: Msg) => void size(msg).catch((error) => msg.respond(sentence(error)));
  door.subscribe('svc', { callback });
  await door.flush();
  const ask = async (body: string, object?: string) => {
    const all = headers();
    if (object) all.set('Troupe-Object', object);
    return (await caller.request('svc', body, { timeout: 10_000, ...(object && { headers: all }) })).string();
  };
  return { caller, ask, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

test('arguments are the body, or the object that a header refers to', async () => {
  await using it = await echo(true);
  expect(await it.ask('12345')).toBe('5');
  const store = await it.caller.jetstream().views.os(BUCKET);
  await store.putBlob({ name: 'args' }, new Uint8Array(200_000));
  await store.putBlob({ name: 'huge' }, new Uint8Array(300_001));
  expect(await it.ask('', `${BUCKET}/args`)).toBe('200000');
  expect(await it.ask('', `${BUCKET}/huge`)).toMatch(/300001 bytes; the limit is 300000/);
  expect(await it.ask('', `${BUCKET}/none`)).toMatch(/no object troupe_blobs\/none/);
});

test('another bucket is refused: the daemon may read what its caller may not', async () => {
  await using it = await echo(true);
  const store = await it.caller.jetstream().views.os('private');
  await store.putBlob({ name: 'secret' }, new Uint8Array(5));
  expect(await it.ask('', 'private/secret')).toMatch(/Troupe-Object must be troupe_blobs/);
});

test('without JetStream a reference is refused with a reason', async () => {
  await using it = await echo(false);
  expect(await it.ask('', `${BUCKET}/args`)).toMatch(/cannot be read/);
});
