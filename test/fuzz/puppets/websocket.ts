// A server behind a WebSocket: it opens and lists as it should, and says between that what it is told.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { withOpenIds } from '../arbitraries/messages.ts';
import { properAnswer } from './http.ts';
import { OpenIds, type Puppet, within } from './puppet.ts';

const PATIENCE_MS = 5_000;

export async function websocketPuppet(): Promise<Puppet<string> & { readonly url: string }> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  let current: { ws: WebSocket; open: OpenIds; closed: Promise<unknown> } | undefined;
  let fence = 0;
  server.on('connection', (ws) => {
    const open = new OpenIds();
    ws.on('error', () => {}); // 'close' follows
    ws.on('message', (data) => {
      const { id, method, params } = JSON.parse(String(data));
      if (method === undefined) return void ws.emit(`fence ${id}`);
      if (id === undefined) return;
      const result = properAnswer(method, params);
      if (result) ws.send(JSON.stringify({ jsonrpc: '2.0', id, result }));
      else open.add(id);
    });
    current = { ws, open, closed: new Promise((resolve) => ws.once('close', resolve)) };
    server.emit('life');
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async say(inputs) {
      if (current?.ws.readyState !== 1) await within(PATIENCE_MS, once(server, 'life'));
      if (!current) return;
      const { ws, open, closed } = current;
      fence += 1;
      const id = `fence-${fence}`;
      const isTaken = Promise.race([new Promise((resolve) => ws.once(`fence ${id}`, resolve)), closed]);
      for (const input of inputs) ws.send(withOpenIds(input, open.all), { binary: input.length % 97 === 0 });
      ws.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));
      await within(PATIENCE_MS, isTaken);
    },
    async [Symbol.asyncDispose]() {
      for (const ws of server.clients) ws.terminate();
      server.close();
    },
  };
}
