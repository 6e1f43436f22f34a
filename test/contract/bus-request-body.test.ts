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
    if (object !== undefined) all.set('Troupe-Object', object);
    return (await caller.request('svc', body, { timeout: 10_000, headers: all })).string();
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
  expect(await it.ask('12345', ' ')).toMatch(/Troupe-Object must be troupe_blobs/);
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

test('a link is refused: it leads to another bucket', async () => {
  await using it = await echo(true);
  const js = it.caller.jetstream();
  const [store, elsewhere] = [await js.views.os(BUCKET), await js.views.os('private')];
  const secret = await elsewhere.putBlob({ name: 'secret' }, new Uint8Array(5));
  await store.link('innocent', secret);
  expect(await it.ask('', `${BUCKET}/innocent`)).toMatch(/Troupe-Object must be troupe_blobs/);
});

test('what is told of an object is not believed: neither a size too small nor one too large', async () => {
  await using it = await echo(true);
  const js = it.caller.jetstream();
  const store = await js.views.os(BUCKET);
  for (const [name, size] of Object.entries({ long: 400_000, short: 100 })) {
    const { bucket, nuid, chunks, digest } = await store.putBlob({ name }, new Uint8Array(size));
    const lie = JSON.stringify({ name, bucket, nuid, chunks, digest, size: 200 });
    await js.publish(`$O.${BUCKET}.M.${Buffer.from(name).toString('base64url').padEnd(8, '=')}`, lie);
  }
  expect(await it.ask('', `${BUCKET}/long`)).toMatch(/has \d+ bytes; the limit is 300000/);
  expect(await it.ask('', `${BUCKET}/short`)).toMatch(/cannot be read \(100 of its 200 bytes came\)/);
});

test('a name that is too long for a subject is refused', async () => {
  await using it = await echo(true);
  expect(await it.ask('', `${BUCKET}/${'o'.repeat(4_000)}`)).toMatch(/at most 128 characters/);
  expect(await it.ask('still there')).toBe('11');
});
