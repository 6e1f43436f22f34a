// Servers on version 2 of the official SDK behind our client, with sessions and without, as far as they speak the eras
// that have `initialize`.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { listen, remoteCast, said } from '../support/remote.ts';

function newServer() {
  const server = new McpServer({ name: 'sdk2', version: '2' });
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => ({
    content: [{ type: 'text', text: message }],
  }));
  return server;
}

/** A web-standard handler behind node:http. */
function bridged(handle: (request: Request) => Promise<Response>) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
    const given = { method: request.method ?? 'GET', headers: request.headers as Record<string, string>, ...body };
    const answer = await handle(new Request(`http://${request.headers.host}${request.url}`, given));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  };
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
