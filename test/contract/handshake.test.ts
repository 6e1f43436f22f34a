// What troupe says of itself when it opens a server: the words of the protocol, and nothing that a strict server could take for
// a message of another version.

import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { bridged, json, listen, remoteCast, said, scripted } from '../support/remote.ts';

it('opens a server of two eras that takes a request with _meta and without headers for one of the later era', async () => {
  const server = scripted({
    first({ message, request, response }) {
      const isOfThisEra = !message?.params?._meta || request.headers['mcp-protocol-version'] !== undefined;
      if (isOfThisEra) return false;
      const error = { code: -32020, message: 'Missing MCP-Protocol-Version header' };
      json(response, 400, { jsonrpc: '2.0', id: message.id, error });
      return true;
    },
    call: ({ message, response }) =>
      json(response, 200, { jsonrpc: '2.0', id: message.id, result: { content: [{ type: 'text', text: 'done' }] } }),
  });
  await using web = await listen(server);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('done');
  const [initialize] = server.of('initialize');
  expect(Object.keys(initialize?.params).sort()).toEqual(['capabilities', 'clientInfo', 'protocolVersion']);
  expect(initialize?.headers['troupe-via']).toBe('test');
});

it('opens a server of two eras that is made with version 2 of the official SDK', async () => {
  const make = () => {
    const server = new McpServer({ name: 'both', version: '2' });
    server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }));
    return server;
  };
  await using web = await listen(bridged(createMcpHandler(make).fetch));
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('echo', { message: 'here' }))).toBe('here');
});
