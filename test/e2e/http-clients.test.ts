// The official clients, old and new, over Streamable HTTP and over HTTP+SSE, at the endpoint of all servers: everything
// they can ask for, answered by the right server.

import * as v2 from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;
let url = '';
beforeAll(async () => {
  const servers = { memo: fixture('resources'), steps: fixture('progress'), naps: fixture('hangs') };
  d = await daemon({ servers });
  url = await d.http();
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

/** What the clients of both generations can do, in one form. */
type Host = {
  listTools(): Promise<{ tools: { name: string }[] }>;
  call(name: string, args?: object, options?: { onprogress?: (p: any) => void; signal?: AbortSignal }): Promise<any>;
  readResource(params: { uri: string }): Promise<any>;
  subscribeResource(params: { uri: string }): Promise<unknown>;
  unsubscribeResource(params: { uri: string }): Promise<unknown>;
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<any>;
  complete(params: any): Promise<any>;
  setLoggingLevel(level: 'debug' | 'error'): Promise<unknown>;
  close(): Promise<void>;
  readonly heard: { method: string; params: any }[];
};

const ME = { name: 'test', version: '1' };

async function oldClient(transport: any): Promise<Host> {
  const client = new Client(ME);
  const heard: Host['heard'] = [];
  for (const schema of [
    ResourceUpdatedNotificationSchema,
    LoggingMessageNotificationSchema,
    ToolListChangedNotificationSchema,
  ])
    client.setNotificationHandler(schema as any, (message: any) => void heard.push(message));
  await client.connect(transport);
  const call: Host['call'] = (name, args = {}, options) =>
    client.callTool({ name, arguments: { ...args } }, undefined, options);
  return Object.assign(client as any, { call, heard });
}

async function newClient(transport: any): Promise<Host> {
  const client = new v2.Client(ME);
  const heard: Host['heard'] = [];
  for (const method of ['resources/updated', 'message', 'tools/list_changed'])
    client.setNotificationHandler(`notifications/${method}` as any, (message: any) => void heard.push(message));
  await client.connect(transport);
  const call: Host['call'] = (name, args = {}, options) => client.callTool({ name, arguments: { ...args } }, options);
  return Object.assign(client as any, { call, heard });
}

const CLIENTS: [name: string, connect: () => Promise<Host>][] = [
  ['SDK v1 over Streamable HTTP', () => oldClient(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))],
  ['SDK v2 over Streamable HTTP', () => newClient(new v2.StreamableHTTPClientTransport(new URL(`${url}/mcp`)))],
  ['SDK v1 over HTTP+SSE', () => oldClient(new SSEClientTransport(new URL(`${url}/sse`)))],
  ['SDK v2 over HTTP+SSE', () => newClient(new v2.SSEClientTransport(new URL(`${url}/sse`)))],
];

describe.each(CLIENTS)('%s', (_, connect) => {
  let host: Host;
  beforeAll(async () => {
    host = await connect();
  });
  afterAll(() => host?.close());
  const methods = () => host.heard.map(({ method, params }) => `${method} ${params?.uri ?? params?.data ?? ''}`.trim());

  it('lists and calls, with progress in order', async () => {
    const { tools } = await host.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['memo__touch', 'naps__sleep', 'steps__steps']),
    );
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
    const done = await host.call('steps__steps', { count: 5, ms: 20 }, { onprogress });
    expect(done.isError).toBeFalsy();
    // The clients themselves lose the last one when it comes in one piece with the answer.
    expect(steps).toEqual([1, 2, 3, 4, 5].slice(0, Math.max(4, steps.length)));
  });

  it('cancels, and the server hears of it', async () => {
    const abort = new AbortController();
    const call = host.call('naps__sleep', { ms: 60_000 }, { signal: abort.signal });
    const failed = expect(call).rejects.toThrow();
    await eventually(async () => expect((await d.server('naps')).inFlight).toBeGreaterThan(0));
    abort.abort('enough');
    await failed;
    await eventually(async () => expect((await d.server('naps')).inFlight).toBe(0));
    const seen = await host.call('naps__cancelled');
    expect(seen.structuredContent.value.at(-1)).toMatchObject({ requestId: expect.any(Number) });
  });

  it('reads, prompts and completes', async () => {
    expect((await host.readResource({ uri: 'memo://a' })).contents[0].text).toBe('the memo memo://a');
    const prompt = await host.getPrompt({ name: 'memo__greet', arguments: { who: 'Ann' } });
    expect(prompt.messages[0].content.text).toBe('Greet Ann.');
    const ref = { type: 'ref/prompt', name: 'memo__greet' };
    const { completion } = await host.complete({ ref, argument: { name: 'who', value: 'An' } });
    expect(completion.values).toEqual(['An!']);
  });

  it('subscribes and hears of updates, until it unsubscribes', async () => {
    await host.subscribeResource({ uri: 'memo://b' });
    await host.call('memo__touch', { uri: 'memo://b' });
    await eventually(() => expect(methods()).toContain('notifications/resources/updated memo://b'));
    await host.unsubscribeResource({ uri: 'memo://b' });
    const before = methods().length;
    await host.call('memo__touch', { uri: 'memo://b' });
    await host.call('memo__touch', { uri: 'memo://a' });
    expect(methods().length).toBe(before);
  });

  it('hears log lines of its level and above', async () => {
    await host.setLoggingLevel('error');
    await host.call('memo__log', { level: 'info', text: 'too quiet' });
    await host.call('memo__log', { level: 'error', text: 'loud enough' });
    await eventually(() => expect(methods()).toContain('notifications/message loud enough'));
    expect(methods()).not.toContain('notifications/message too quiet');
  });

  it('hears that a list has changed', async () => {
    await host.listTools();
    const name = `later${Math.floor(performance.now())}`;
    await host.call('memo__add', { name });
    await eventually(() => expect(methods()).toContain('notifications/tools/list_changed'));
    expect((await host.listTools()).tools.map((tool) => tool.name)).toContain(`memo__${name}`);
  });
});

describe('a client that tries a newer version first', () => {
  it('finds that we speak the older ones, and goes on with one', async () => {
    const client = new v2.Client(ME, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new v2.StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    expect(client.getProtocolEra()).toBe('legacy');
    expect((await client.listTools()).tools.length).toBeGreaterThan(3);
    await client.close();
  });
});

describe('one server at its own endpoint', () => {
  it('has its names unchanged, over each door', async () => {
    const hosts = [
      await oldClient(new StreamableHTTPClientTransport(new URL(`${url}/mcp/steps`))),
      await newClient(new v2.SSEClientTransport(new URL(`${url}/sse/steps`))),
    ];
    for (const host of hosts) {
      expect((await host.listTools()).tools.map(({ name }) => name)).toEqual(['steps', 'echo']);
      expect((await host.call('steps', { count: 1 })).isError).toBeFalsy();
      await host.close();
    }
  });
});
