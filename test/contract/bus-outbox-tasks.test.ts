// Events about tasks, which are one step with the status that they tell of; and those of a daemon that is gone.

import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { natsPublisher, outbox } from '../../src/bus/outbox.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const OLD_MS = 60_000;
let store: Store;
let server: Awaited<ReturnType<typeof natsServer>>;
let heard: string[];

beforeEach(async () => {
  const directory = await scratch();
  server = await natsServer();
  store = await openStore(directory.path, { ballastBytes: 0 });
  heard = [];
  const listener = await server.connect();
  listener.subscribe('ev.>', { callback: (_, msg) => void heard.push(msg.string()) });
  await listener.flush();
  onTestFinished(async () => {
    await store.close();
    await server[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
});

const depth = () => store.get<{ depth: number }>('outboxDepth')?.depth;
const event = (text: string) => Buffer.from(text);
const standing = (status: string, epoch = 1) => ({ id: 't', owner: 'me', epoch, status });

/** A task of `me`, in its first epoch. */
async function addTask(): Promise<void> {
  const about = ['t', 'p', 's', 'tool', 'nats', null, 'dispatching', 1, 'me', null, ''];
  await store.commit('addTask', [...about, 1_000, 1, 1, 1, 1_001, event('call'), 'p', 10]);
}
const setStatus = (status: string, epoch = 1) => store.commit('setTaskStatus', [status, null, 1, 't', 'me', epoch]);

test('a status is told in the order in which it was written, however soon the next one came', async () => {
  await addTask();
  const box = outbox(store);
  box.online(natsPublisher(await server.connect()));
  const statuses = ['input_required', 'working', 'input_required', 'working'];
  for (const status of statuses) {
    void setStatus(status);
    void box.add('ev.task', event(status), undefined, standing(status));
  }
  await eventually(() => expect(heard).toEqual(statuses));
  await box.idle();
  expect(depth()).toBe(0);
});

test('a status that does not stand is not told: the task is somebody else’s', async () => {
  await addTask();
  await store.commit('cancelTask', ['stop', event('{}'), 1, 1, 1, 't']); // takes it away
  const box = outbox(store);
  box.online(natsPublisher(await server.connect()));
  expect(await setStatus('input_required')).toBe(false);
  await box.add('ev.task', event('not so'), undefined, standing('input_required'));
  await box.add('ev.task', event('nor so'), undefined, standing('cancelled'));
  await box.add('ev.task', event('but so'), undefined, standing('cancelled', 2));
  await eventually(() => expect(heard).toEqual(['but so']));
});

test('what a daemon left that died before it could send it is sent by another, though that has nothing to say', async () => {
  const box = outbox(store);
  box.online(natsPublisher(await server.connect()));
  await box.add('ev.a', event('my own'));
  await eventually(() => expect(heard).toEqual(['my own']));
  await store.commit('addOutbox', ['ev.a', 'theirs', event('theirs'), Date.now() - OLD_MS]);
  await eventually(() => expect(heard).toEqual(['my own', 'theirs']), 30_000);
  await box.idle();
  expect(depth()).toBe(0);
}, 60_000);

test('more than it keeps in memory is not lost while the bus is away', async () => {
  const box = outbox(store);
  const connection = await server.connect();
  box.online(natsPublisher(connection));
  await box.add('ev.a', event('0'));
  await eventually(() => expect(heard).toEqual(['0']));
  box.offline();
  const names = Array.from({ length: 2_500 }, (_, i) => String(i + 1));
  await Promise.all(names.map((name) => box.add('ev.a', event(name))));
  box.online(natsPublisher(connection));
  await eventually(() => expect(heard).toEqual(['0', ...names]), 30_000);
  await box.idle();
  expect([depth(), box.dropped]).toEqual([0, 0]);
}, 60_000);
