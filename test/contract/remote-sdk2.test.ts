// Servers on version 2 of the official SDK behind our client, with sessions and without, as far as they speak the eras
// that have `initialize`.

import { randomUUID } from 'node:crypto';
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { bridged, listen, remoteCast, said } from '../support/remote.ts';

function newServer() {
  const server = new McpServer({ name: 'sdk2', version: '2' });
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => ({
    content: [{ type: 'text', text: message }],
  }));
  return server;
}

function stateful() {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request: Request): Promise<Response> => {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '');
    if (known) return known.handleRequest(request);
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await newServer().connect(transport);
    return transport.handleRequest(request);
  };
}

it.each([
  ['with sessions', stateful],
  ['without sessions', () => createMcpHandler(newServer, { legacy: 'stateless' }).fetch],
])('is opened, listed and called %s', async (_, make) => {
  await using web = await listen(bridged(make()));
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect([...(await far.tools())]).toEqual(['echo']);
  const messages = Array.from({ length: 20 }, (_each, index) => `m${index}`);
  expect((await Promise.all(messages.map((message) => far.call('echo', { message })))).map(said)).toEqual(messages);
  expect(far.member.facts).toMatchObject({ name: 'sdk2', era: '2025-11-25' });
});
