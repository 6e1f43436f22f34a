// Sessions and streams over HTTP when connections and daemons die: the host goes on with its id, comes back to its streams,
// and hears each event once and in order.

import * as v2 from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { BOTH, jsonIn, listenTo } from '../support/http-door.ts';

let d: Daemon;
let url = '';
beforeAll(async () => {
  d = await daemon({
    servers: { memo: fixture('resources'), steps: fixture('progress'), naps: fixture('hangs', { drainMs: 100 }) },
  });
  url = await d.http();
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const JSON_TYPE = { 'content-type': 'application/json', accept: BOTH };
let lastId = 0;

async function enter(path = '/mcp/steps', version = '2025-11-25') {
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answer = await request(`${url}${path}`, { method: 'POST', headers: JSON_TYPE, body });
  await answer.body.dump();
  const mine = { 'mcp-session-id': String(answer.headers['mcp-session-id']), 'mcp-protocol-version': version };
  return { mine, path };
}
type Entered = Awaited<ReturnType<typeof enter>>;

async function post({ mine, path }: Entered, message: object) {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const answer = await request(`${url}${path}`, { method: 'POST', headers: { ...JSON_TYPE, ...mine }, body });
  const text = await answer.body.text();
  return { status: answer.statusCode, json: jsonIn(text) };
}
const call = ({ mine, path }: Entered, name: string, args: object) => {
  lastId += 1;
  const params = { name, arguments: args, _meta: { progressToken: 'mine' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: lastId, method: 'tools/call', params });
  return listenTo(`${url}${path}`, { method: 'POST', headers: { ...JSON_TYPE, ...mine }, body });
};
const listen = ({ mine, path }: Entered, last?: string) =>
  listenTo(`${url}${path}`, {
    ...{ method: 'GET', headers: { accept: 'text/event-stream', ...mine, ...(last && { 'last-event-id': last }) } },
  });
type Stream = Awaited<ReturnType<typeof listenTo>>;
const messages = (stream: Stream) => stream.events.flatMap(({ data }) => (data ? [JSON.parse(data)] : []));
const progress = (stream: Stream) => messages(stream).flatMap(({ params }) => params?.progress ?? []);
const lastOf = (stream: Stream) => stream.events.findLast(({ id }) => id)?.id;

describe('a host that loses its connection', () => {
  it('gets the rest of its stream, each event once and in order, and 204 when there is no more', async () => {
    const host = await enter();
    const first = await call(host, 'steps', { count: 100, ms: 20 });
    await eventually(() => expect(progress(first).length).toBeGreaterThan(3));
    first.leave();
    const second = await listen(host, lastOf(first));
    await eventually(() => expect(progress(second).length).toBeGreaterThan(3));
    second.leave();
    const third = await listen(host, lastOf(second));
    await eventually(() => third.isOver, 20_000);
    const whole = await listen(host, first.events[0]?.id);
    await eventually(() => whole.isOver);
    expect([first, second, third].flatMap(messages)).toEqual(messages(whole));
    expect(progress(whole)).toEqual(progress(whole).toSorted((a, b) => a - b));
    expect(messages(third).at(-1)).toMatchObject({ id: lastId, result: {} });
    expect((await listen(host, lastOf(third))).status).toBe(204);
  });

  it('never gets what another session was told', async () => {
    const [ann, bob] = [await enter(), await enter()];
    const stream = await call(ann, 'steps', { count: 5, ms: 20 });
    await eventually(() => stream.isOver);
    expect((await listen(bob, lastOf(stream))).status).toBe(400);
    expect((await listen({ ...ann, path: '/mcp' }, lastOf(stream))).status).toBe(404);
  });

  it('gets what belongs to no request on its standing stream, also what came while nobody read it', async () => {
    const host = await enter('/mcp/memo');
    for (const uri of ['memo://a', 'memo://b'])
      await post(host, { id: 1, method: 'resources/subscribe', params: { uri } });
    // Two updates of one resource soon after each other are one.
    const touch = (uri: string) =>
      post(host, { id: 2, method: 'tools/call', params: { name: 'touch', arguments: { uri } } });
    const stream = await listen(host);
    await touch('memo://a');
    await eventually(() => expect(messages(stream).length).toBe(1));
    stream.leave();
    await touch('memo://a');
    await touch('memo://b');
    const back = await listen(host, lastOf(stream));
    await eventually(() => expect(messages(back).length).toBe(2));
    expect(messages(back).every(({ method }) => method === 'notifications/resources/updated')).toBe(true);
    back.leave();
  });
});

describe('a client of SDK v1 that is answered with an error on a stream', () => {
  it('does not keep a stream open for an answer that it has', async () => {
    const client = new Client({ name: 't', version: '1' });
    const statuses: number[] = [];
    const counting = async (input: any, init?: any) => {
      const response = await fetch(input, init);
      if (init?.method === 'GET' && new Headers(init.headers).has('last-event-id')) statuses.push(response.status);
      return response;
    };
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp/naps`), { fetch: counting });
    await client.connect(transport as any);
    const call = client.callTool({ name: 'sleep', arguments: { ms: 60_000 } }, undefined, { timeout: 60_000 });
    const failed = expect(call).rejects.toThrow();
    await eventually(async () => expect((await d.server('naps')).inFlight).toBe(1));
    await d.cli('restart', 'naps');
    await failed;
    await eventually(() => expect(statuses).toEqual([204]), 10_000); // it asks once more, and is told that this was all
    await client.close();
  });
});

describe('kill -9 of the daemon', () => {
  it('costs hosts a reconnect: the session goes on, a stream tells how it ended, nothing is told twice', async () => {
    const host = await enter();
    const stream = await call(host, 'steps', { count: 1000, ms: 10 });
    await eventually(() => expect(progress(stream).length).toBeGreaterThan(5));
    await d.kill();
    await eventually(() => stream.isOver);
    await d.start();
    expect(await d.http()).toBe(url); // the port is kept, or no host would find its way back
    const back = await listen(host, lastOf(stream));
    await eventually(() => back.isOver);
    const told = [...progress(stream), ...progress(back)];
    expect(told).toEqual([...new Set(told)].toSorted((a, b) => a - b));
    expect(messages(back).at(-1)).toMatchObject({
      id: lastId,
      error: { data: { troupe: { delivery: 'outcome unknown' } } },
    });
    const listed = await post(host, { id: 7, method: 'tools/list' });
    expect(listed.json.result.tools.map(({ name }: { name: string }) => name)).toContain('steps');
  }, 60_000);

  it('is not even noticed by a client of SDK v2 that calls afterwards', async () => {
    const client = new v2.Client({ name: 't', version: '1' });
    await client.connect(new v2.StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    await d.kill();
    await d.start();
    await d.until('steps', 'ready');
    const done = await client.callTool({ name: 'steps__steps', arguments: { count: 2 } });
    expect(done.isError).toBeFalsy();
    await client.close();
  }, 60_000);

  it('leaves an ended session ended', async () => {
    const host = await enter();
    const ended = await request(`${url}${host.path}`, { method: 'DELETE', headers: host.mine });
    expect(ended.statusCode).toBe(200);
    await d.kill();
    await d.start();
    expect((await post(host, { id: 1, method: 'ping' })).status).toBe(404);
  }, 60_000);
});
