// Sessions are rows: a host goes on with its id whatever becomes of the daemon, and a stream that it left goes on where it
// was. Each event comes exactly once and in order, also from the next life of the daemon.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Event, type RawHost, type RawStream, rawHost } from '../support/host.ts';

let d: Daemon;
let url: string;
const hosts: RawHost[] = [];

beforeAll(async () => {
  d = await daemon({
    servers: {
      steps: fixture('progress'),
      slow: fixture('hangs'),
      things: fixture('resources'),
      echo: fixture('echo'),
    },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  url = await d.http();
});
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  await d[Symbol.asyncDispose]();
});

async function host(path: string, options = {}): Promise<RawHost> {
  const made = await rawHost(`${url}${path}`, options);
  hosts.push(made);
  return made;
}

const steps = (count: number, ms: number) => ({
  name: 'steps__steps',
  arguments: { count, ms },
  _meta: { progressToken: 'token of this host' },
});

/** Reads until it has seen enough, or to the end. */
async function read({ events }: RawStream, isEnough: (event: Event) => boolean = () => false): Promise<Event[]> {
  const seen: Event[] = [];
  for await (const event of events) {
    seen.push(event);
    if (isEnough(event)) break;
  }
  return seen;
}
const progressOf = (events: Event[]) =>
  events.flatMap(({ message }) => (message.method === 'notifications/progress' ? [message.params.progress] : []));
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

it('a stream that its host left goes on where it was, and the call was not cancelled', async () => {
  const h = await host('/mcp');
  const first = await h.begin(7, 'tools/call', steps(20, 20));
  const before = await read(first, ({ message }) => message.params?.progress === 3);
  first.leave();
  const after = await read(await h.get(first.last));
  expect(progressOf([...before, ...after])).toEqual(upTo(20));
  expect(after.at(-1)?.message).toMatchObject({ id: 7, result: { structuredContent: expect.anything() } });
  expect(new Set([...before, ...after].map(({ id }) => id)).size).toBe(before.length + after.length);
  expect(before[0]?.message.params.progressToken).toBe('token of this host');
});

it('a stream can be read again from its beginning, and by its own session only', async () => {
  const [mine, other] = [await host('/mcp'), await host('/mcp')];
  const stream = await mine.begin(1, 'tools/call', steps(3, 5));
  const events = await read(stream);
  const primer = `${stream.last.split('.')[0]}.0`;
  expect(await read(await mine.get(primer))).toEqual(events);
  const stolen = await other.get(primer);
  expect([400, 404]).toContain(stolen.status);
});

it('kill -9 in the middle of streams: each host resumes, each event once and in order, then an honest end', async () => {
  const all = await Promise.all(upTo(6).map(() => host('/mcp')));
  const streams = await Promise.all(all.map((h, i) => h.begin(`call ${i}`, 'tools/call', steps(500, 20))));
  const before = await Promise.all(
    streams.map((stream, i) => read(stream, ({ message }) => message.params?.progress === 4 + i)),
  );
  await d.kill();
  await d.start();
  const after = await Promise.all(all.map(async (h, i) => read(await h.get((before[i] as Event[]).at(-1)?.id))));
  for (const [i, events] of after.entries()) {
    const seen = progressOf([...(before[i] as Event[]), ...events]);
    expect(seen).toEqual(upTo(seen.length));
    expect(events.at(-1)?.message).toMatchObject({
      ...{ jsonrpc: '2.0', id: `call ${i}` },
      error: { code: -32011, data: { troupe: { delivery: 'outcome unknown' } } },
    });
    expect(events.filter(({ message }) => 'id' in message)).toHaveLength(1);
  }
  // The same sessions go on.
  await d.until('echo', 'ready');
  for (const h of all) {
    const { status, result } = await h.ask('tools/call', { name: 'echo__echo', arguments: { message: 'still here' } });
    expect([status, result?.content[0].text]).toEqual([200, 'still here']);
  }
});

it('what a host listens to it still hears after kill -9, and as loud as it asked for', async () => {
  const h = await host('/mcp');
  const levels = async () =>
    (await h.ask('tools/call', { name: 'things__counters', arguments: {} })).result.structuredContent.value.levels;
  expect((await h.ask('logging/setLevel', { level: 'debug' })).result).toEqual({});
  expect((await h.ask('resources/subscribe', { uri: 'memo://a' })).status).toBe(200);
  await d.kill();
  await d.start();
  await d.until('things', 'ready');
  const standing = await h.get();
  await eventually(async () => expect(await levels()).toContain('debug'));
  const heard = read(standing, ({ message }) => message.method === 'notifications/resources/updated');
  await h.ask('tools/call', { name: 'things__touch', arguments: { uri: 'memo://a' } });
  expect((await heard).at(-1)?.message.params).toEqual({ uri: 'memo://a' });
  standing.leave();
});

it('an ended session is unknown, and so is one that never was, or that is another endpoint’s', async () => {
  const h = await host('/mcp/echo');
  expect((await h.ask('tools/list')).result.tools.map(({ name }: { name: string }) => name).sort()).toEqual([
    'echo',
    'raw',
  ]);
  const elsewhere = await host('/mcp/steps', { session: h.session });
  expect((await elsewhere.ask('tools/list')).status).toBe(404);
  expect([200, 204]).toContain((await h.send('DELETE')).statusCode);
  expect((await h.ask('tools/list')).status).toBe(404);
  const stranger = await host('/mcp/echo', { session: 'A'.repeat(22) });
  expect((await stranger.ask('tools/list')).status).toBe(404);
});

it('a cancellation reaches the server, which is the only thing that ends a call early', async () => {
  const h = await host('/mcp/slow');
  const call = h.ask('tools/call', { name: 'sleep', arguments: { ms: 20_000 } }, 'long');
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  expect(await h.notify('notifications/cancelled', { requestId: 'long', reason: 'changed my mind' })).toBe(202);
  expect((await call).error.data.troupe).toMatchObject({ code: 'cancelled', delivery: 'outcome unknown' });
  await eventually(async () => (await d.server('slow')).inFlight === 0);
});
