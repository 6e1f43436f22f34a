// The official SDK's own servers behind our client: whatever way they answer, a call, its progress, its log lines, a
// question, a read and a subscription come through, and each message belongs to the request whose stream brought it.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { bodyOf, listen, remoteCast, said } from '../support/remote.ts';

function newServer() {
  const server = new McpServer({ name: 'sdk', version: '1' }, { capabilities: { logging: {} } });
  server.registerTool('echo', { inputSchema: { message: z.string() } }, async ({ message }, extra) => {
    await extra.sendNotification({
      method: 'notifications/message',
      params: { level: 'info', data: `log ${message}` },
    });
    return { content: [{ type: 'text', text: message }] };
  });
  server.registerTool('counts', { inputSchema: {} }, async (_, { _meta, sendNotification }) => {
    for (const progress of [1, 2, 3])
      await sendNotification({
        method: 'notifications/progress',
        params: { progress, total: 3, progressToken: _meta?.progressToken ?? 0 },
      });
    return { content: [{ type: 'text', text: 'counted' }] };
  });
  server.registerTool('asks', { inputSchema: {} }, async (_, { sendRequest }) => {
    const params = { message: 'name?', requestedSchema: { type: 'object', properties: {} } } as const;
    const answer = await sendRequest({ method: 'elicitation/create', params }, z.looseObject({ action: z.string() }));
    return { content: [{ type: 'text', text: answer.action }] };
  });
  server.registerTool('waits', { inputSchema: {} }, async (_, { signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    aborted.push('waits');
    return { content: [] };
  });
  server.registerResource('memo', 'memo://one', {}, async (uri) => ({ contents: [{ uri: uri.href, text: 'a memo' }] }));
  server.registerPrompt('greet', {}, async () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }],
  }));
  return server;
}

const aborted: string[] = [];

/** Stateful, as the SDK's examples have it. */
function streamable(options: { json?: boolean; resumable?: boolean; stateless?: boolean }) {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const id = String(request.headers['mcp-session-id'] ?? '');
    const body = request.method === 'POST' ? await bodyOf(request) : undefined;
    const transport =
      sessions.get(id) ??
      new StreamableHTTPServerTransport({
        sessionIdGenerator: options.stateless ? undefined : randomUUID,
        enableJsonResponse: options.json ?? false,
        ...(options.resumable && { eventStore: new InMemoryEventStore() }),
        onsessioninitialized: (session: string) => void sessions.set(session, transport),
        onsessionclosed: (session: string) => void sessions.delete(session),
      } as any);
    if (!sessions.has(id)) await newServer().connect(transport as any);
    await transport.handleRequest(request, response, body);
  };
  return Object.assign(handle, { sessions });
}

function sse() {
  const sessions = new Map<string, SSEServerTransport>();
  return async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://here');
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, transport);
      return newServer().connect(transport);
    }
    const transport = sessions.get(url.searchParams.get('sessionId') ?? '');
    if (!transport) return response.writeHead(404).end();
    return transport.handlePostMessage(request, response);
  };
}

const kinds = {
  'SSE answers and sessions': { make: () => streamable({}), transport: 'http' },
  'SSE answers with event ids': { make: () => streamable({ resumable: true }), transport: 'http' },
  'JSON answers': { make: () => streamable({ json: true }), transport: 'http' },
  'no sessions': { make: () => streamable({ stateless: true }), transport: 'http' },
  'HTTP+SSE': { make: sse, transport: 'sse' },
  'HTTP+SSE found by the fallback': { make: sse, transport: 'http' },
} as const;

describe.each(Object.entries(kinds))('a server with %s', (kind, { make, transport }) => {
  it('is opened, listed, called, read and closed', async () => {
    await using web = await listen(make());
    await using far = await remoteCast(web.url, { transport });
    await far.until('ready');
    expect([...(await far.tools())]).toEqual(['echo', 'counts', 'asks', 'waits']);
    expect(said(await far.call('echo', { message: 'héllo' }))).toBe('héllo');
    const read = await far.request('resources/read', { uri: 'memo://one' }).outcome;
    expect(read).toMatchObject({ ok: true });
    expect(await far.request('prompts/get', { name: 'greet' }).outcome).toMatchObject({ ok: true });
    expect(said(await far.call('echo', { message: 1 }))).toContain('Input validation');
    expect(far.member.pid).toBeUndefined();
  });

  it('runs calls side by side, each with its own answer', async () => {
    await using web = await listen(make());
    await using far = await remoteCast(web.url, { transport });
    await far.until('ready');
    const messages = Array.from({ length: 40 }, (_, index) => `m${index}`);
    const outcomes = await Promise.all(messages.map((message) => far.call('echo', { message })));
    expect(outcomes.map(said)).toEqual(messages);
  });

  it('is told when a call is cancelled', async () => {
    await using web = await listen(make());
    await using far = await remoteCast(web.url, { transport });
    await far.until('ready');
    aborted.length = 0;
    const outcome = far.call('waits', {}, { timeoutMs: 300 });
    expect(said(await outcome)).toBe('timeout, outcome unknown');
    if (kind !== 'no sessions') await eventually(() => expect(aborted).toEqual(['waits']));
  });
});

it.each(['SSE answers and sessions', 'SSE answers with event ids'] as const)(
  'attributes what comes on the stream of a request to that request, with %s',
  async (kind) => {
    await using web = await listen(kinds[kind].make());
    await using far = await remoteCast(web.url);
    await far.until('ready');
    const blocked = far.request('tools/call', { name: 'waits', arguments: {} }, { timeoutMs: 2_000 });
    const counted = far.request('tools/call', { name: 'counts', arguments: {} });
    const echoed = far.request('tools/call', { name: 'echo', arguments: { message: 'x' } });
    const asking = far.request(
      'tools/call',
      { name: 'asks', arguments: {} },
      {
        onAsk: ({ answer }) => {
          answer({ ok: true, result: Buffer.from('{"action":"accept","content":{}}') });
          return { withdraw: () => {}, complete: () => {} };
        },
      },
    );
    expect(said(await asking.outcome)).toBe('accept');
    expect(said(await counted.outcome)).toBe('counted');
    expect(said(await echoed.outcome)).toBe('x');
    expect(counted.signals.map((signal) => signal.type === 'progress' && signal.progress)).toEqual([1, 2, 3]);
    expect(echoed.signals.map(({ type }) => type)).toEqual(['log']);
    expect(blocked.signals).toEqual([]);
    await blocked.outcome;
  },
);

it('ends its session at the server when it is stopped', async () => {
  const handle = streamable({});
  await using web = await listen(handle);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(handle.sessions.size).toBe(1);
  far.fleet.tell('far', { type: 'stop' });
  await far.until('stopped');
  expect(handle.sessions.size).toBe(0);
  await eventually(() => web.connections === 0);
});
