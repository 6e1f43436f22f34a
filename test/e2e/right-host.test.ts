// P6 between hosts: two that share one server process, use the same ids and the same tokens at the same time, and listen to
// things of their own, see their own messages and not one of the other's.

import { expect, it } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';

const CALLS = 1_000;
const AT_ONCE = 50;

it('P6 right caller: 1,000 tagged calls of each of two hosts, overlapping in every way, and no message astray', async () => {
  await using d = await daemon({
    servers: { tags: fixture('tags'), more: fixture('tags', {}, { SCHEME: 'other' }) },
    troupe: HTTP,
  });
  const url = await d.http();
  const names = ['ann', 'ben'];
  const hosts = await Promise.all(names.map(async (name) => begin(name, await rawHost(`${url}/mcp`))));
  try {
    for (const { name, host } of hosts)
      for (const each of ['a', 'b'])
        expect((await host.ask('resources/subscribe', { uri: `tag://${name}/${each}` })).result).toEqual({});
    await Promise.all(hosts.map(({ name, host, seen }) => callMany(name, host, seen)));
    for (const { name, host } of hosts)
      await host.ask('tools/call', { name: 'tags__touch', arguments: { uri: `tag://${name}/a` } }, 'touch');
    await eventually(() => hosts.every(({ seen }) => seen.updates.length > 0));
    for (const { name, seen } of hosts) {
      expect(seen.answers).toBe(CALLS);
      expect(seen.progress).toBe(CALLS);
      expect([...seen.strange]).toEqual([]);
      expect(seen.updates).toEqual([`tag://${name}/a`]);
    }
    // One process of each server served them all.
    expect((await d.status()).servers.map(({ name }) => name)).toEqual(['tags', 'more']);
  } finally {
    await Promise.all(hosts.map(({ host }) => host.close()));
  }
}, 120_000);

const HTTP = { http: { address: '127.0.0.1:0', maxStreams: 256 } };
type Seen = { answers: number; progress: number; updates: string[]; strange: Set<string> };

async function begin(name: string, host: RawHost) {
  const seen: Seen = { answers: 0, progress: 0, updates: [], strange: new Set() };
  void listen(name, host, seen).catch(() => {}); // it ends with the host
  return { name, host, seen };
}

async function listen(name: string, host: RawHost, seen: Seen): Promise<void> {
  for await (const { message } of (await host.get()).events) {
    if (message.method === 'notifications/resources/updated') seen.updates.push(message.params.uri);
    else if (message.method !== 'notifications/message' || !String(message.params.data).startsWith(name))
      seen.strange.add(JSON.stringify(message));
  }
}

async function callMany(name: string, host: RawHost, seen: Seen): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < CALLS) await call(name, host, seen, ++next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function call(name: string, host: RawHost, seen: Seen, id: number): Promise<void> {
  const tag = `${name} ${id}`;
  const server = id % 2 ? 'tags' : 'more';
  const params = { name: `${server}__tag`, arguments: { tag, ms: id % 7 }, _meta: { progressToken: id } };
  const { events } = await host.begin(id, 'tools/call', params);
  for await (const { message } of events) {
    const isMine =
      message.params?.progressToken === id
        ? message.params.message === tag
        : message.id === id
          ? message.result?.content[0].text === tag
          : message.params?.data === tag;
    if (!isMine) seen.strange.add(JSON.stringify(message));
    if (message.params?.progressToken === id) seen.progress++;
    if ('id' in message) seen.answers++;
  }
}
