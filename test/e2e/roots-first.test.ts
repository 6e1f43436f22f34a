// The roots of a host are known to the server that its very first call goes to, through every door; and a host hears of
// those that are not given to servers.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ListRootsRequestSchema, LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
let d: Daemon;
let url: string;

beforeAll(async () => {
  const server = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
  const pooled = { ...server, 'x-troupe': { interactive: true, pool: 4 } };
  d = await daemon({ servers: { everything: server, pooled }, troupe: { http: { address: '127.0.0.1:0' } } });
  url = await d.http();
  // The server asks for roots a while after it was opened, and keeps what it was given: then there was no host.
  const reply = async () => (await d.request('troupe.call.everything.get-roots-list')).data.content[0].text;
  await eventually(async () => expect(await reply()).toContain('no roots are currently configured'));
});
afterAll(() => d?.[Symbol.asyncDispose]());

function host(...roots: string[]) {
  const client = new Client({ name: 'host', version: '1' }, { capabilities: { roots: { listChanged: true } } });
  const logs: { level: string; data: unknown }[] = [];
  client.setRequestHandler(ListRootsRequestSchema, () => ({
    roots: roots.map((path) => ({ uri: pathToFileURL(path).href })),
  }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params));
  return { client, logs };
}

const http = (path: string): Transport => new StreamableHTTPClientTransport(new URL(`${url}${path}`));
const shim = (): Transport =>
  new StdioClientTransport({ command: process.execPath, args: [MAIN, 'connect', 'everything'], env: d.env });

it.each([
  ['Streamable HTTP', 'get-roots-list', () => http('/mcp/everything')],
  ['Streamable HTTP, with many servers', 'everything__get-roots-list', () => http('/mcp')],
  ['Streamable HTTP, with a pool', 'get-roots-list', () => http('/mcp/pooled')],
  ['the stdio shim', 'get-roots-list', shim],
])('the first call of a host has its roots over %s', async (way, name, open) => {
  const directory = join(d.dir, way.replaceAll(/\W/g, '-'));
  mkdirSync(directory);
  const { client } = host(directory);
  await client.connect(open());
  const { content } = (await client.callTool({ name, arguments: {} })) as any;
  expect(content[0].text).toContain(pathToFileURL(directory).href);
  if (client.transport instanceof StreamableHTTPClientTransport) await client.transport.terminateSession();
  await client.close();
});

it('a host is told which of its roots servers are not told of, and what to do', async () => {
  const { client, logs } = host('/usr');
  await client.connect(http('/mcp'));
  await client.callTool({ name: 'everything__get-roots-list', arguments: {} });
  await eventually(() =>
    expect(logs).toContainEqual({
      level: 'warning',
      logger: 'troupe',
      data: expect.stringMatching(/^the root file:\/\/\/usr is not given to servers: .*x-troupe\.roots\.allow/),
    }),
  );
  expect((await d.cli('roots')).stdout).toMatch(/file:\/\/\/usr .*x-troupe\.roots\.allow/);
  await client.close();
});
