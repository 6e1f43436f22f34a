// A server behind an address whose answers are inputs: each request of the daemon gets the next one, and a proper answer when there
// is none left.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpAnswer } from '../arbitraries/http.ts';
import { withOpenIds } from '../arbitraries/messages.ts';
import type { Puppet } from './puppet.ts';

const CAPABILITIES = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, logging: {} };

/** What a good server says to what is asked when a session opens; nothing to other requests. */
export function properAnswer(method: string, params: { protocolVersion?: string } = {}): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: CAPABILITIES,
        serverInfo: { name: 'puppet', version: '1' },
      };
    case 'tools/list':
      return { tools: [{ name: 'anything', inputSchema: { type: 'object' } }] };
    case 'resources/list':
      return { resources: [] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    case 'prompts/list':
      return { prompts: [] };
    case 'ping':
    case 'logging/setLevel':
      return {};
    default:
      return undefined;
  }
}

export async function httpPuppet(): Promise<Puppet<HttpAnswer> & { readonly url: string }> {
  const waiting: HttpAnswer[] = [];
  let emptied = (): void => {};
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const next = waiting.shift();
      if (waiting.length === 0) emptied();
      if (next) misbehave(response, next, text);
      else behave(request, response, text);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    /** Resolves when the daemon has asked for all of them: whoever calls the server makes it ask. */
    say(inputs) {
      waiting.push(...inputs);
      return new Promise((resolve) => {
        emptied = resolve;
      });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function behave(request: IncomingMessage, response: ServerResponse, text: string): void {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const { id, method, params } = JSON.parse(text);
  if (id === undefined || method === undefined) return void response.writeHead(202).end();
  const result = properAnswer(method, params) ?? { content: [] };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** Node refuses some headers itself; what it refuses is written past it. */
function misbehave(response: ServerResponse, { status, headers, body, isCut }: HttpAnswer, asked: string): void {
  const id = /"id":\s*("[^"]*"|\d+)/.exec(asked)?.[1];
  const bytes = withOpenIds(body, id === undefined ? [] : [JSON.parse(id)]);
  const socket = response.socket;
  if (!socket) return;
  const lines = [`HTTP/1.1 ${status} Whatever`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (!isCut) lines.push(`Content-Length: ${bytes.length}`);
  socket.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]));
  // The body of an answer without a length ends with the connection; an event stream is held open for a moment.
  if (isCut) setTimeout(() => socket.destroy(), 5);
  response.detachSocket(socket);
  if (!isCut) socket.end();
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}
