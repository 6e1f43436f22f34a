// Two daemons on one state directory: a session that was opened through one is served by the other, down to a stream in the
// middle and a call in flight, and also when the first is no more.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';

let d: Daemon;
let one: string;
let two: string;
const hosts: RawHost[] = [];

beforeAll(async () => {
  d = await daemon({
    servers: { steps: fixture('progress'), slow: fixture('hangs'), echo: fixture('echo') },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  expect((await d.cli('up', '--detach', '--instance', 'two')).exitCode).toBe(0);
  one = await d.http();
  two = JSON.parse((await d.cli('status', '--json', '--instance', 'two')).stdout).http.url;
}, 60_000);
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  await d.cli('down', '--instance', 'two');
  await d[Symbol.asyncDispose]();
});

/** One session, as each of the two daemons sees it. */
async function both(path = '/mcp'): Promise<[RawHost, RawHost]> {
  const first = await rawHost(`${one}${path}`);
  const second = await rawHost(`${two}${path}`, { session: first.session });
  hosts.push(first, second);
  return [first, second];
}

it('serves a session through either', async () => {
  expect(one).not.toBe(two);
  for (const host of await both()) {
    const { status, result } = await host.ask('tools/call', { name: 'echo__echo', arguments: { message: 'hi' } });
    expect([status, result.content[0].text]).toEqual([200, 'hi']);
  }
});

it('reads through one what the other is still writing: every event, once, in order, to the end', async () => {
  const [first, second] = await both();
  const params = { name: 'steps__steps', arguments: { count: 30, ms: 20 }, _meta: { progressToken: 1 } };
  const stream = await first.begin(9, 'tools/call', params);
  const seen: number[] = [];
  for await (const { message } of stream.events) if (seen.push(message.params.progress) === 3) break;
  stream.leave();
  let answer: any;
  for await (const { message } of (await second.get(stream.last)).events) {
    if ('id' in message) answer = message;
    else seen.push(message.params.progress);
  }
  expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
  expect(answer).toMatchObject({ id: 9, result: {} });
});

it('takes a cancellation to the one that has the call', async () => {
  const [first, second] = await both('/mcp/slow');
  const call = first.ask('tools/call', { name: 'sleep', arguments: { ms: 30_000 } }, 'x');
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  expect(await second.notify('notifications/cancelled', { requestId: 'x' })).toBe(202);
  expect((await call).error.data.troupe.code).toBe('cancelled');
});

it('ends a session for both', async () => {
  const [first, second] = await both();
  expect((await second.ask('ping')).status).toBe(200);
  await first.send('DELETE');
  await eventually(async () => (await second.ask('ping')).status === 404);
});

it('tells a reader at the second that the first has died while it read', async () => {
  const [first, second] = await both();
  const params = { name: 'steps__steps', arguments: { count: 500, ms: 20 }, _meta: { progressToken: 1 } };
  const stream = await first.begin('left', 'tools/call', params);
  for await (const { message } of stream.events) if (message.params.progress === 1) break;
  stream.leave();
  let answer: any;
  for await (const { message } of (await second.get(stream.last)).events) {
    if (message.params?.progress === 5) await d.kill();
    if ('id' in message) answer = message;
  }
  expect(answer).toMatchObject({ id: 'left', error: { data: { troupe: { delivery: 'outcome unknown' } } } });
  await d.start();
  one = await d.http();
});

it('goes on through the second when the first is killed, and tells what became of what it had in flight', async () => {
  const [first, second] = await both();
  const params = { name: 'steps__steps', arguments: { count: 500, ms: 20 }, _meta: { progressToken: 1 } };
  const stream = await first.begin('lost', 'tools/call', params);
  for await (const { message } of stream.events) if (message.params.progress === 2) break;
  await d.kill();
  let answer: any;
  for await (const { message } of (await second.get(stream.last)).events) if ('id' in message) answer = message;
  expect(answer).toMatchObject({ id: 'lost', error: { data: { troupe: { delivery: 'outcome unknown' } } } });
  const { result } = await second.ask('tools/call', { name: 'echo__echo', arguments: { message: 'on' } });
  expect(result.content[0].text).toBe('on');
  await d.start();
});
