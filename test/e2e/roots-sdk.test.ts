// Roots with the official parts on both sides: hosts on SDK v1 and v2 through every door, and the reference server's own tool.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { NatsClientTransport } from '../../src/nats-transport/transport.ts';
import { type Daemon, daemon, MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const NAME = 'everything__get-roots-list';
let d: Daemon;
let url: string;
let nc: NatsConnection;

beforeAll(async () => {
  Object.assign(globalThis, { WebSocket }); // the transport is made for browsers, and for Nodes newer than ours
  const everything = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
  d = await daemon({
    servers: { everything },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  [url, nc] = [await d.http(), await d.nats()];
});
afterAll(() => d?.[Symbol.asyncDispose]());

const shim = () => ({ command: process.execPath, args: [MAIN, 'connect'], env: d.env, stderr: 'pipe' as const });
const info = { name: 'host with roots', version: '1' };
const capabilities = { roots: { listChanged: true } };

/** The two differ in how a handler is named. */
function hostOn(version: 'v1' | 'v2', roots: () => { uri: string; name?: string }[]): ClientV1 {
  const list = async () => ({ roots: roots() });
  if (version === 'v2') {
    const client = new v2.Client(info, { capabilities });
    client.setRequestHandler('roots/list', list);
    return client as unknown as ClientV1;
  }
  const client = new ClientV1(info, { capabilities });
  client.setRequestHandler(ListRootsRequestSchema, list);
  return client;
}

const said = async (client: ClientV1): Promise<string> =>
  ((await client.callTool({ name: NAME, arguments: {} })) as any).content[0].text;

it.each([
  ['v1', 'Streamable HTTP', () => new HttpV1(new URL(`${url}/mcp`))],
  ['v2', 'Streamable HTTP', () => new v2.StreamableHTTPClientTransport(new URL(`${url}/mcp`))],
  ['v1', 'HTTP+SSE', () => new SSEClientTransport(new URL(`${url}/sse`))],
  ['v1', 'WebSocket', () => new WebSocketClientTransport(new URL(`${url.replace('http', 'ws')}/ws`))],
  ['v1', 'NATS', () => new NatsClientTransport(nc)],
  ['v1', 'the stdio shim', () => new StdioV1(shim())],
  ['v2', 'the stdio shim', () => new StdioV2(shim())],
] as const)(
  'the reference server knows the roots of a host on SDK %s over %s, and hears of changes',
  async (version, way, open) => {
    const [first, second] = ['first', 'second'].map((name) =>
      join(d.dir, `${name} ${version} ${way.replace('/', '')}`),
    );
    for (const path of [first, second]) mkdirSync(String(path), { recursive: true });
    let roots = [{ uri: pathToFileURL(String(first)).href, name: 'Mine' }];
    const client = hostOn(version, () => roots);
    await client.connect(open() as any);
    await eventually(async () => expect(await said(client)).toContain(`1. Mine\n   URI: ${roots[0]?.uri}`), 15_000);
    roots = [{ uri: pathToFileURL(String(second)).href, name: 'Other' }];
    await client.sendRootsListChanged();
    await eventually(async () => expect(await said(client)).toContain(`1. Other\n   URI: ${roots[0]?.uri}`), 15_000);
    expect(await said(client)).toContain('(1 total)');
    if (way === 'Streamable HTTP') await (client.transport as any).terminateSession();
    await client.close();
    await eventually(async () => {
      const reply = await d.request('troupe.call.everything.get-roots-list');
      expect(reply.data.content[0].text).toContain('no roots are currently configured');
    }, 15_000);
  },
);
