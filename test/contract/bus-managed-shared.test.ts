// One nats-server for all daemons on a state directory: started once, left by each, ended by the last.

import { expect, test } from 'vitest';
import { type Broker, startBroker, stopLeftBroker } from '../../src/bus/managed.ts';
import { processIdentity } from '../../src/store/process-identity.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

async function house() {
  const directory = await scratch();
  const { path: binary } = await natsBinary();
  const brokers: Broker[] = [];
  return {
    path: directory.path,
    async enter(user: string, onExit: (why: string) => void = () => {}) {
      const broker = await startBroker({ binary, directory: directory.path, user, maxPayloadBytes: 2 ** 20, onExit });
      brokers.push(broker);
      return broker;
    },
    async [Symbol.asyncDispose]() {
      for (const broker of brokers) await broker.stop();
      await directory[Symbol.asyncDispose]();
    },
  };
}

const lives = async (pid: number): Promise<boolean> => (await processIdentity(pid)) !== undefined;

test('daemons that start at the same moment start one, and the others adopt it', async () => {
  await using place = await house();
  const all = await Promise.all(['daemon', 'daemon-a', 'daemon-b'].map((user) => place.enter(user)));
  expect(new Set(all.map(({ pid, url, token }) => `${pid} ${url} ${token}`)).size).toBe(1);
  expect(all.map(({ adopted }) => adopted).sort()).toEqual([false, true, true]);
});

test.each([
  ['who started it', 0],
  ['who adopted it', 1],
])('when %s stops first it goes on, and it ends with the last', async (_, leaver) => {
  await using place = await house();
  const both = [await place.enter('daemon'), await place.enter('daemon-b')];
  const [first, last] = leaver === 0 ? both : both.toReversed();
  await first?.stop();
  expect(await lives(both[0]?.pid ?? 0)).toBe(true);
  await last?.stop();
  expect(await lives(both[0]?.pid ?? 0)).toBe(false);
});

test('when all stop at the same moment nothing is left', async () => {
  await using place = await house();
  const all = await Promise.all(['daemon', 'daemon-a', 'daemon-b'].map((user) => place.enter(user)));
  await Promise.all(all.map((broker) => broker.stop()));
  expect(await lives(all[0]?.pid ?? 0)).toBe(false);
});

test('when it dies all are told, and those who want it back get one', async () => {
  await using place = await house();
  const told: string[] = [];
  const users = ['daemon', 'daemon-b'];
  const [first] = await Promise.all(users.map((user) => place.enter(user, () => told.push(user))));
  process.kill(first?.pid ?? 0, 'SIGKILL');
  await eventually(() => expect(told.toSorted()).toEqual(users));
  const again = await Promise.all(users.map((user) => place.enter(user)));
  expect(new Set(again.map(({ pid }) => pid)).size).toBe(1);
  expect(again[0]).toMatchObject({ url: first?.url, token: first?.token });
});

test('who leaves without a goodbye ends it only if nobody else uses it', async () => {
  await using place = await house();
  const [one, other] = [await place.enter('daemon'), await place.enter('daemon-b')];
  one.abandon();
  expect(await lives(other.pid)).toBe(true);
  other.abandon();
  await eventually(async () => expect(await lives(other.pid)).toBe(false));
});

test('one that is used is not left over', async () => {
  await using place = await house();
  const broker = await place.enter('daemon-b');
  expect(await stopLeftBroker(place.path)).toBe(false);
  expect(await lives(broker.pid)).toBe(true);
});
