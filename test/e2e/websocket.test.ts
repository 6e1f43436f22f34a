// The WebSocket door of a real daemon, with the official SDK's client and with plain sockets.

import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Daemon, daemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { doEverything, HOST_SERVERS, sdkHost } from '../support/sdk-host.ts';

let d: Daemon;
let url: string;

beforeAll(async () => {
  Object.assign(globalThis, { WebSocket }); // the transport is made for browsers, and for Nodes newer than ours
  d = await daemon({ servers: HOST_SERVERS, troupe: { http: { address: '127.0.0.1:0' } } });
  url = (await d.http()).replace('http:', 'ws:');
});
afterAll(() => d?.[Symbol.asyncDispose]());

// Version 2 of the SDK brings no transport for WebSocket; that of version 1 is one for both.
it.each(['v1', 'v2'] as const)('a host on SDK %s does everything over /ws', async (version) => {
  await using host = await sdkHost(version, new WebSocketClientTransport(new URL(`${url}/ws`)));
  await doEverything(host);
});

it('/ws/<server> is one server with its names unchanged', async () => {
  await using host = await sdkHost('v1', new WebSocketClientTransport(new URL(`${url}/ws/echo`)));
  expect((await host.client.listTools()).tools.map(({ name }) => name).sort()).toEqual(['echo', 'raw']);
  expect((await host.call('echo', { message: 'hi' })).content[0].text).toBe('hi');
});

it('bytes come back as they went, beyond what JSON.parse keeps', async () => {
  const ws = new WebSocket(`${url}/ws/echo`, 'mcp');
  const messages: string[] = [];
  ws.on('message', (data) => messages.push(String(data)));
  await new Promise((resolve) => ws.once('open', resolve));
  const params = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}';
  ws.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}`);
  const call = '{"name":"raw","arguments":{"n":9007199254740993,"x":1.0,"s":"\\u00e9"}}';
  ws.send(`{"jsonrpc":"2.0","id":"a\\u0062","method":"tools/call","params":${call}}`);
  await eventually(() => messages.length === 2);
  expect(messages[1]).toContain('"id":"a\\u0062"');
  expect(messages[1]).toContain('{"n":9007199254740993,"x":1.0,"s":"\\u00e9"}');
  expect(messages[1]?.endsWith('}')).toBe(true);
  ws.close();
});

it.each([
  ['404', '/ws/nobody', {}],
  ['403', '/ws', { origin: 'https://evil.example' }],
  ['403', '/ws', { headers: { host: 'evil.example' } }],
])('answers %s at %s with %j', async (status, path, options) => {
  const ws = new WebSocket(`${url}${path}`, 'mcp', options);
  const refused = new Promise<string>((resolve) => ws.once('error', (error) => resolve(error.message)));
  expect(await refused).toContain(status);
});

it('a connection that closes ends its session, and the call that was in flight is not cancelled', async () => {
  const before = (await d.status()).sessions;
  const cancelled = async () => {
    await using other = await sdkHost('v1', new WebSocketClientTransport(new URL(`${url}/ws`)));
    return JSON.stringify(await other.call('slow__cancelled'));
  };
  const known = await cancelled();
  const host = await sdkHost('v1', new WebSocketClientTransport(new URL(`${url}/ws`)));
  const call = host.call('slow__sleep', { ms: 1_000 }).catch(() => {});
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  await host.close();
  await call;
  await eventually(async () => (await d.status()).sessions === before);
  await eventually(async () => (await d.server('slow')).inFlight === 0, 10_000);
  expect(await cancelled()).toBe(known);
});

it('a daemon that stops says goodbye with 1001', async () => {
  const ws = new WebSocket(`${url}/ws`, 'mcp');
  await new Promise((resolve) => ws.once('open', resolve));
  const closed = new Promise((resolve) => ws.once('close', resolve));
  expect(await d.down()).toBe(0);
  expect(await closed).toBe(1001);
});
