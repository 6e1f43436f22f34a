// Events that the bus will never take: each is put aside with a record, and holds up no other.

import { Events, type NatsConnection } from 'nats';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { bounded } from '../../src/bus/bounds.ts';
import { natsPublisher, type Outbox, outbox } from '../../src/bus/outbox.ts';
import { openStore, type RefusedRow, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

let nats: TestServer;
let store: Store;
let reader: NatsConnection;
let heard: string[];

beforeEach(async () => {
  const directory = await scratch();
  nats = await natsServer();
  store = await openStore(directory.path, { ballastBytes: 0 });
  reader = await nats.connect();
  heard = [];
  reader.subscribe('ev.>', { callback: (_, msg) => void heard.push(msg.string()) });
  await reader.flush();
  onTestFinished(async () => {
    await store.close();
    await nats[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
});

/** As the daemon does it, with or without the bounds. */
async function online(box: Outbox, isBounded = false) {
  const nc = await nats.connect();
  if (isBounded) bounded(nc, { onRefused: () => {}, onFault: () => {} });
  const seen = { nc, cuts: 0 };
  void (async () => {
    for await (const { type } of nc.status()) {
      if (type === Events.Disconnect) seen.cuts += 1;
      if (type === Events.Reconnect) box.online(natsPublisher(nc));
    }
  })();
  box.online(natsPublisher(nc));
  return seen;
}

const POISON = `ev.${'x'.repeat(4_100)}`;
const add = (subject: string, text: string) =>
  store.commit('addOutbox', [subject, `id ${text}`, Buffer.from(text), Date.now()]);
const putAside = () => store.all<RefusedRow>('refused', [10]);
const depth = () => store.get<{ depth: number }>('outboxDepth')?.depth;

test('that an earlier version has poisoned is sent all the same: what cannot be sent is put aside', async () => {
  await add('ev.a', 'before');
  await add(POISON, 'poison');
  await add('ev.a', 'after');
  const box = outbox(store);
  const seen = await online(box, true);
  await eventually(() => expect(heard).toEqual(['before', 'after']));
  await box.idle();
  expect([depth(), box.dropped, seen.cuts]).toEqual([0, 1, 0]);
  expect(putAside()).toMatchObject([{ message_id: 'id poison', subject: POISON.slice(0, 256), bytes: 6 }]);
  expect(putAside()[0]?.why).toMatch(/4151 bytes/);
});

test('finds the one event for which the broker cuts the connection, and puts only that one aside', async () => {
  const names = Array.from({ length: 130 }, (_, at) => `event ${at}`);
  for (const [at, name] of names.entries()) await add(at === 70 ? POISON : 'ev.a', name);
  const box = outbox(store);
  const seen = await online(box); // as if our own bounds knew nothing of it
  await eventually(() => expect(depth()).toBe(0), 15_000);
  await box.idle();
  expect(putAside().map(({ message_id }) => message_id)).toEqual(['id event 70']);
  await eventually(() => expect(heard.at(-1)).toBe('event 129'));
  expect([...new Set(heard)].sort()).toEqual(names.filter((_, at) => at !== 70).sort());
  const { cuts } = seen;
  await add('ev.a', 'one more');
  await box.add('ev.a', Buffer.from('and another'));
  await eventually(() => expect(heard.at(-1)).toBe('and another'));
  expect(seen.cuts).toBe(cuts);
  expect(cuts).toBeLessThanOrEqual(4);
});

test('an outage, however long, is nobody’s fault', async () => {
  const box = outbox(store);
  const { nc } = await online(box);
  await nats.kill();
  for (let at = 0; at < 8; at++) {
    await box.add('ev.a', Buffer.from(`event ${at}`));
    await box.idle(); // an attempt has failed
  }
  await nats.restart();
  await eventually(() => Promise.all([reader.flush(), nc.flush()]));
  await eventually(() => expect(depth()).toBe(0));
  expect(putAside()).toEqual([]);
});

test('keeps a record of the newest thousand', async () => {
  for (let at = 0; at < 1_005; at++) store.write('putAside', [`id ${at}`, 'ev.a', 1, 'too large', 1]);
  await store.flush();
  expect(store.get<{ count: number }>('countRefused')?.count).toBe(1_000);
  expect(putAside()[0]?.message_id).toBe('id 1004');
});
