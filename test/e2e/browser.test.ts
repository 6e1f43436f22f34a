// A page in a real browser tries every door. From a foreign origin, and after DNS rebinding, it gets 403 from each and
// nothing is done; from an origin that the configuration names it is let in.

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserPage, type Page } from '../support/browser.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

const PAGE = '<!doctype html><title>a page</title>';

let dir: Scratch;
let d: Daemon;
let page: Page;
let foreign: Site;
let friendly: Site;
let port: string;
const host = new Client({ name: 'host', version: '1.0.0' });

beforeAll(async () => {
  dir = await scratch();
  [foreign, friendly] = await Promise.all([site(), site()]);
  const tally = fixture('tallies');
  tally.args.push(join(dir.path, 'calls'));
  d = await daemon({
    servers: { tally },
    troupe: { http: { address: '127.0.0.1:0', origins: [friendly.origin] } },
  });
  const address = JSON.parse((await d.cli('env', '--json')).stdout).TROUPE_HTTP;
  port = new URL(address).port;
  await host.connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp/tally`)));
  page = await browserPage('MAP evil.example 127.0.0.1');
}, 120_000);
afterAll(async () => {
  await host.close();
  await page?.[Symbol.asyncDispose]();
  await d?.[Symbol.asyncDispose]();
  for (const each of [foreign, friendly]) each?.server.close();
  await dir?.[Symbol.asyncDispose]();
});

type Site = { readonly server: Server; readonly origin: string };

async function site(): Promise<Site> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(PAGE);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const calls = () => (existsSync(join(dir.path, 'calls')) ? readFileSync(join(dir.path, 'calls'), 'utf8') : '');
const sessionId = () => (host.transport as StreamableHTTPClientTransport).sessionId;

/** Every way that a page has of reaching a server, at every path; `id` is a session that a host has open. */
const attack = (base: string, id: string | undefined) => `
  const base = ${JSON.stringify(base)}, id = ${JSON.stringify(id)};
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'tally', arguments: { id: 'evil' } } };
  const body = JSON.stringify(call);
  const json = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'Mcp-Session-Id': id };
  const events = { Accept: 'text/event-stream' };
  const outcome = (promise) => promise.then(({ type, status }) => type + ' ' + status, () => 'failed');
  const opened = (target) => new Promise((resolve) => {
    target.onopen = () => resolve('open');
    target.onerror = () => resolve('failed');
  }).finally(() => target.close());
  const outcomes = [];
  for (const path of ['/mcp', '/mcp/tally', '/sse', '/sse/tally', '/messages?sessionId=' + id, '/ws', '/']) {
    const url = base + path;
    outcomes.push(
      await outcome(fetch(url, { method: 'POST', body })),
      await outcome(fetch(url, { method: 'POST', body, mode: 'no-cors' })),
      await outcome(fetch(url, { method: 'POST', body, headers: json })),
      await outcome(fetch(url, { headers: events })),
      await outcome(fetch(url, { headers: events, mode: 'no-cors', signal: AbortSignal.timeout(5000) })),
      await outcome(fetch(url, { headers: { ...events, 'Mcp-Session-Id': id } })),
      await outcome(fetch(url, { method: 'DELETE', headers: { 'Mcp-Session-Id': id } })),
      await opened(new EventSource(url)),
      await opened(new WebSocket(url.replace('http', 'ws'), 'mcp')),
      await opened(new WebSocket(url.replace('http', 'ws'))),
    );
    await new Promise((resolve) => {
      const image = Object.assign(new Image(), { onload: resolve, onerror: resolve, src: url });
      setTimeout(() => { image.src = ''; resolve(); }, 5000);
    });
    const frame = Object.assign(document.createElement('iframe'), { name: 'frame' });
    const form = Object.assign(document.createElement('form'), { action: url, method: 'post', target: 'frame', enctype: 'text/plain' });
    form.append(Object.assign(document.createElement('input'), { name: body.slice(0, -2), value: '}}' }));
    document.body.append(frame, form);
    await new Promise((resolve) => { frame.onload = resolve; form.submit(); });
    frame.remove();
    form.remove();
  }
  return outcomes;`;
const PATHS = 7;
const WAYS = 12;

const FROM = ['on another port', 'that is rebound to us by its own name'] as const;

test.each(FROM)(
  'a page %s gets 403 from every door, and nothing is done',
  async (from) => {
    const isRebound = from !== 'on another port';
    const base = isRebound ? `http://evil.example:${port}` : `http://127.0.0.1:${port}`;
    if (isRebound) await page.open(`${base}/page`, PAGE);
    else await page.open(foreign.origin);
    const outcomes = await page.run<string[]>(attack(base, sessionId()));
    const ours = () => page.answers.filter(({ url }) => new URL(url).port === port && !url.endsWith('/favicon.ico'));
    await eventually(() => expect(ours().length).toBeGreaterThanOrEqual(PATHS * WAYS));
    expect(ours().filter(({ status }) => status !== 403)).toEqual([]);
    // A page of our own name may see that it was refused; another sees nothing at all.
    expect(new Set(outcomes)).toEqual(new Set(isRebound ? ['basic 403', 'failed'] : ['opaque 0', 'failed']));
    expect(calls()).toBe('');
    expect((await host.listTools()).tools.length).toBeGreaterThan(0);
  },
  120_000,
);

test('a page of a configured origin is let in by every door', async () => {
  await page.open(friendly.origin);
  const result = await page.run<Record<string, any>>(`
    const base = 'http://127.0.0.1:${port}';
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const send = (message, more = {}) =>
      fetch(base + '/mcp/tally', { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(message) });
    const clientInfo = { name: 'page', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const opening = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
    const opened = await send(opening);
    const session = { 'Mcp-Session-Id': opened.headers.get('Mcp-Session-Id'), 'MCP-Protocol-Version': '2025-11-25' };
    await opened.text();
    await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
    const call = { name: 'tally', arguments: { id: 'friend' } };
    const called = await send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }, session);
    const source = new EventSource(base + '/sse/tally');
    const endpoint = await new Promise((resolve) => source.addEventListener('endpoint', ({ data }) => resolve(data)));
    source.close();
    const socket = new WebSocket(base.replace('http', 'ws') + '/ws/tally', 'mcp');
    await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
    socket.send(JSON.stringify(opening));
    const welcome = await new Promise((resolve) => { socket.onmessage = ({ data }) => resolve(data); });
    socket.close();
    const ended = await fetch(base + '/mcp/tally', { method: 'DELETE', headers: session });
    return { called: await called.text(), endpoint, welcome: JSON.parse(welcome), ended: ended.status };`);
  expect(result.called).toContain('friend');
  expect(result.endpoint).toMatch(/^\/messages\?/);
  expect(result.welcome).toMatchObject({ id: 0, result: { capabilities: { tools: {} } } });
  expect(result.ended).toBeLessThan(300);
  expect(calls()).toBe('friend\n');
});
