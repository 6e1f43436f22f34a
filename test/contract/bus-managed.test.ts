import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { connect } from 'nats';
import { expect, test } from 'vitest';
import { type Broker, startBroker } from '../../src/bus/managed.ts';
import { processIdentity } from '../../src/store/process-identity.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

type Start = (onExit?: (why: string) => void) => Promise<Broker>;

/** A directory to start servers in; both are gone when the scope ends. */
async function home(): Promise<AsyncDisposable & { path: string; start: Start }> {
  const { path: binary } = await natsBinary();
  const directory = await scratch();
  const brokers: Broker[] = [];
  return {
    path: directory.path,
    async start(onExit = () => {}) {
      const broker = await startBroker({ binary, directory: directory.path, maxPayloadBytes: 8 * 2 ** 20, onExit });
      brokers.push(broker);
      return broker;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(brokers.map((broker) => broker.stop()));
      await directory[Symbol.asyncDispose]();
    },
  };
}

const open = ({ url, token }: Broker, options = {}) =>
  connect({ servers: url, token, maxReconnectAttempts: -1, reconnectTimeWait: 50, ...options });
const json = async (path: string) => JSON.parse(await readFile(path, 'utf8'));

test('starts a server on the loopback that wants the token, has JetStream, and keeps its secret in 0600 files', async () => {
  await using place = await home();
  const broker = await place.start();
  expect(broker).toMatchObject({ adopted: false, pid: expect.any(Number), startTime: expect.any(String) });
  const connection = await open(broker);
  expect(connection.info).toMatchObject({ max_payload: 8 * 2 ** 20, jetstream: true, host: '127.0.0.1' });
  await connection.close();
  await expect(connect({ servers: broker.url, reconnect: false })).rejects.toThrow(/authorization/i);
  for (const file of ['token', 'nats.conf', 'broker.json', 'nats-server.log'])
    expect((await stat(join(place.path, file))).mode & 0o077, file).toBe(0);
  const { stdout } = await execa('ps', ['-o', 'args=', '-p', String(broker.pid)]);
  expect(stdout).not.toContain(broker.token);
  expect(await readFile(join(place.path, 'broker.json'), 'utf8')).not.toContain(broker.token);
});

test('comes back on the same port with the same token, so that clients reconnect by themselves', async () => {
  await using place = await home();
  const first = await place.start();
  const client = await open(first);
  await first.stop();
  expect(await processIdentity(first.pid)).toBeUndefined();
  expect(await json(join(place.path, 'broker.json'))).toEqual({ port: Number(new URL(first.url).port) });
  const second = await place.start();
  expect([second.url, second.token, second.adopted]).toEqual([first.url, first.token, false]);
  await eventually(() => client.flush());
  await client.close();
});

test('moves to another port when its own is taken, and never shows the stranger the token', async () => {
  await using place = await home();
  const first = await place.start();
  await first.stop();
  const heard: Buffer[] = [];
  const stranger = createServer((socket) => socket.on('data', (data) => heard.push(data)));
  stranger.listen(Number(new URL(first.url).port), '127.0.0.1');
  await once(stranger, 'listening');
  const second = await place.start();
  stranger.close();
  expect(second.url).not.toBe(first.url);
  expect(heard).toEqual([]);
  await (await open(second)).close();
  expect((await json(join(place.path, 'broker.json'))).port).toBe(Number(new URL(second.url).port));
});

test('says when the server dies, and only then', async () => {
  await using place = await home();
  const reasons: string[] = [];
  const broker = await place.start((why) => reasons.push(why));
  process.kill(broker.pid, 'SIGKILL');
  await eventually(() => expect(reasons).toHaveLength(1));
  expect(reasons[0]).toContain('nats-server.log');
  const next = await place.start((why) => reasons.push(why));
  expect(next).toMatchObject({ url: broker.url, adopted: false });
  await next.stop();
  expect(reasons).toHaveLength(1);
});

test('adopts the server of a daemon that was killed: no client notices', async () => {
  await using place = await home();
  const first = await place.start();
  const client = await open(first, { reconnect: false });
  const reasons: string[] = [];
  const second = await place.start((why) => reasons.push(why)); // the first daemon never said goodbye
  expect(second).toMatchObject({ adopted: true, pid: first.pid, url: first.url, token: first.token });
  await client.flush();
  await client.close();
  process.kill(second.pid, 'SIGKILL');
  await eventually(() => expect(reasons).toHaveLength(1));
});

test('adopts it also when the daemon died before it could note the pid', async () => {
  await using place = await home();
  const first = await place.start();
  await writeFile(join(place.path, 'broker.json'), JSON.stringify({ port: Number(new URL(first.url).port) }));
  expect(await place.start()).toMatchObject({ adopted: true, pid: first.pid });
});

test('ends a server of its own that lives but does not answer, and starts a fresh one', {
  timeout: 20_000,
}, async () => {
  await using place = await home();
  const first = await place.start();
  process.kill(first.pid, 'SIGSTOP');
  // Its threads stop one after the other, and until the last has it may still answer.
  await eventually(async () => /^T/.test((await execa('ps', ['-o', 'stat=', '-p', String(first.pid)])).stdout));
  const second = await place.start();
  expect(second).toMatchObject({ adopted: false, token: first.token });
  expect(await processIdentity(first.pid)).toBeUndefined();
});

test('leaves a process alone that merely has the pid it remembers', async () => {
  await using place = await home();
  const first = await place.start();
  const path = join(place.path, 'broker.json');
  const remembered = await json(path);
  await first.stop();
  const stranger = spawn('sleep', ['60']);
  await writeFile(path, JSON.stringify({ ...remembered, pid: stranger.pid }));
  const second = await place.start();
  expect(second.adopted).toBe(false);
  expect(stranger.kill()).toBe(true);
});

test('a binary that cannot serve is one sentence, not a hang', async () => {
  await using place = await scratch();
  const options = { directory: place.path, maxPayloadBytes: 2 ** 20, onExit: () => {} };
  await expect(startBroker({ ...options, binary: '/bin/false' })).rejects.toThrow(/nats-server does not start; .*log/);
  await expect(startBroker({ ...options, binary: join(place.path, 'missing') })).rejects.toThrow(/does not start/);
});
