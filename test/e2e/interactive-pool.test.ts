// The life of a pool's processes: they come when they are needed, sleep when they are not, follow the configuration and what
// their first one is told, are mended by themselves, and never outlive the daemon. Of a server's events there is one voice.

import { expect, it } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const asks = (troupe: object = {}) => ({ asks: fixture('asks-tags', { interactive: true, pool: 3, ...troupe }) });
const names = async (d: Daemon) => (await d.status()).servers.map(({ name }) => name);
const states = async (d: Daemon) => (await d.status()).servers.map(({ name, state }) => `${name} ${state}`);
const work = (d: Daemon, tag: string, ms = 0) => d.request('troupe.call.asks.work', { tag, ms });
const busy = (d: Daemon, ms: number) => Promise.all(['a', 'b', 'c', 'd'].map((tag) => work(d, tag, ms)));
const texts = (replies: Awaited<ReturnType<typeof busy>>) => replies.map(({ data }) => data.content?.[0].text);
const THREE = ['asks', 'asks~2', 'asks~3'];

it('processes come when calls wait, with the same lists and no events of their own, and sleep when they do not', async () => {
  await using d = await daemon({ servers: asks({ idleStopMs: '1s' }) });
  const nc = await d.nats();
  const heard: string[] = [];
  nc.subscribe('troupe.ev.asks.>', { callback: (_error, msg) => heard.push(msg.subject) });
  await nc.flush();
  await d.until('asks', 'ready');
  expect(texts(await busy(d, 300))).toEqual(['a', 'b', 'c', 'd']);
  const { servers } = await d.status();
  expect(servers.map(({ name, tools }) => [name, tools])).toEqual(THREE.map((name) => [name, 3]));
  expect(servers.map(({ calls }) => calls).every((calls) => calls > 0)).toBe(true);
  await eventually(async () => expect(await states(d)).toEqual(THREE.map((name) => `${name} asleep`)), 15_000);
  expect(texts(await busy(d, 100))).toEqual(['a', 'b', 'c', 'd']);
  await eventually(async () => expect(await states(d)).toEqual(THREE.map((name) => `${name} asleep`)), 15_000);
  // How it opened and read its list for the first time may be told before or after we listen.
  const lived = () => heard.filter((subject) => !/(draining|closing|list_changed)$/.test(subject));
  const life = ['asleep', 'opening', 'ready', 'asleep'].map((state) => `troupe.ev.asks.state.${state}`);
  const told = () => lived().slice(lived().indexOf(life[0] as string));
  await eventually(() => expect(told()).toEqual(life)); // they go through the outbox
  expect(heard.filter((subject) => subject.endsWith('list_changed')).length).toBeLessThanOrEqual(1);
}, 60_000);

it('follows what the first is told and what the configuration says', async () => {
  await using d = await daemon({ servers: asks() });
  await busy(d, 300);
  expect(await names(d)).toEqual(THREE);
  await d.cli('stop', 'asks');
  await eventually(async () => expect(await states(d)).toEqual(['asks stopped']));
  expect((await work(d, 'x')).code).toBe(503);
  await d.cli('start', 'asks');
  expect(texts(await busy(d, 300))).toEqual(['a', 'b', 'c', 'd']);
  await eventually(async () => expect(await names(d)).toEqual(THREE));

  await d.write(asks({ pool: 2 }));
  await eventually(async () => expect((await names(d)).length).toBe(2), 15_000);
  expect(texts(await busy(d, 100))).toEqual(['a', 'b', 'c', 'd']);
  expect(await names(d)).toHaveLength(2);

  await d.write(asks({ interactive: false }));
  await eventually(async () => expect(await names(d)).toEqual(['asks']), 15_000);
  expect(texts(await busy(d, 100))).toEqual(['a', 'b', 'c', 'd']);
  expect(await names(d)).toEqual(['asks']);

  await d.write({ ...asks(), echo: fixture('echo') });
  await eventually(async () => expect(await names(d)).toContain('echo'), 15_000);
  await busy(d, 300);
  const pids = (await d.status()).servers.flatMap(({ name, pid }) => (name.startsWith('asks') ? (pid ?? []) : []));
  expect(pids).toHaveLength(3);
  await d.write({ echo: fixture('echo') });
  await eventually(async () => expect(await names(d)).toEqual(['echo']), 15_000);
  await eventually(async () => expect((await Promise.all(pids.map(isAlive))).some(Boolean)).toBe(false));
}, 90_000);

it('a process that dies takes only its own call along, and none outlives a daemon that is killed', async () => {
  await using d = await daemon({ servers: asks() });
  const calls = ['a', 'b', 'c'].map((tag) => work(d, tag, 2_000));
  const queued = work(d, 'd');
  await eventually(async () => expect((await d.status()).servers.map(({ inFlight }) => inFlight)).toEqual([1, 1, 1]));
  expect((await d.server('asks')).queued).toBe(1);
  process.kill((await d.server('asks~2')).pid as number, 'SIGKILL');
  const ended = await Promise.all([...calls, queued]);
  expect(ended.filter(({ code }) => code === 502)).toHaveLength(1);
  expect(ended.filter(({ code }) => code === undefined)).toHaveLength(3);
  await d.until('asks~2', 'ready');
  const pids = (await d.status()).servers.map(({ pid }) => pid as number);
  expect((await Promise.all(pids.map(isAlive))).every(Boolean)).toBe(true);
  await d.kill();
  await d.start();
  expect((await Promise.all(pids.map(isAlive))).some(Boolean)).toBe(false);
  expect(await names(d)).toEqual(['asks']);
}, 60_000);
