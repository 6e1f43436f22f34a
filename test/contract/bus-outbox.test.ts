import type { Msg } from 'nats';
import { expect, test } from 'vitest';
import { natsPublisher, outbox } from '../../src/bus/outbox.ts';
import { openStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

async function place() {
  const directory = await scratch();
  const server = await natsServer({ maxPayload: 64 * 1024 });
  const store = await openStore(directory.path, { ballastBytes: 0 });
  const depth = () => store.get<{ depth: number }>('outboxDepth')?.depth;
  return {
    server,
    store,
    depth,
    async [Symbol.asyncDispose]() {
      await store.close();
      await server[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

async function listener(server: Awaited<ReturnType<typeof natsServer>>) {
  const connection = await server.connect();
  const heard: Msg[] = [];
  connection.subscribe('ev.>', { callback: (_, msg) => void heard.push(msg) });
  await connection.flush();
  return { connection, heard, texts: () => heard.map((msg) => msg.string()) };
}

const event = (text: string) => Buffer.from(text);

test('what was added while there was no bus is sent in order when there is one, and then forgotten', async () => {
  await using it = await place();
  const box = outbox(it.store);
  const names = Array.from({ length: 250 }, (_, i) => `event ${i}`);
  await Promise.all(names.map((name) => box.add('ev.a', event(name), `id of ${name}`)));
  expect(it.depth()).toBe(250);
  const { texts, heard } = await listener(it.server);
  box.online(natsPublisher(await it.server.connect()));
  await eventually(() => expect(texts()).toEqual(names));
  expect(heard[7]?.headers?.get('Nats-Msg-Id')).toBe('id of event 7');
  await box.idle();
  expect(it.depth()).toBe(0);
  await box.add('ev.b', event('one more'));
  await eventually(() => expect(texts().at(-1)).toBe('one more'));
});

test('nothing is lost when the broker dies and comes back, also what was published into the gap', async () => {
  await using it = await place();
  const connection = await it.server.connect();
  const { texts, connection: reader } = await listener(it.server);
  const box = outbox(it.store);
  box.online(natsPublisher(connection));
  await box.add('ev.a', event('before'));
  await eventually(() => expect(texts()).toEqual(['before']));
  await it.server.kill();
  await box.add('ev.a', event('during 1')); // nobody has told the outbox yet
  box.offline();
  await box.add('ev.a', event('during 2'));
  await it.server.restart();
  await eventually(() => Promise.all([reader.flush(), connection.flush()]));
  box.online(natsPublisher(connection));
  await eventually(() => expect([...new Set(texts())]).toEqual(['before', 'during 1', 'during 2']));
  await box.idle();
  expect([it.depth(), box.dropped]).toEqual([0, 0]);
});

test('beyond its limit the oldest are given up, and counted', async () => {
  await using it = await place();
  const box = outbox(it.store, 5);
  for (let i = 0; i < 8; i++) await box.add('ev.a', event(String(i)));
  await Promise.all(['8', '9'].map((name) => box.add('ev.a', event(name))));
  expect([it.depth(), box.dropped]).toEqual([5, 5]);
  const { texts } = await listener(it.server);
  box.online(natsPublisher(await it.server.connect()));
  await eventually(() => expect(texts()).toEqual(['5', '6', '7', '8', '9']));
});

test('an event that no message can carry does not hold up the next', async () => {
  await using it = await place();
  const box = outbox(it.store);
  await box.add('ev.a', Buffer.alloc(100_000));
  await box.add('ev.a', event('small'));
  const { texts } = await listener(it.server);
  box.online(natsPublisher(await it.server.connect()));
  await eventually(() => expect(texts()).toEqual(['small']));
  await box.idle();
  expect([it.depth(), box.dropped]).toEqual([0, 1]);
});
