// The WebSocket door on a real server of its own with little sessions behind it, and clients that keep what they hear.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket } from 'ws';
import { websocketDoor } from '../../src/doors/websocket.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from './eventually.ts';
import { littleSessions } from './little-sessions.ts';

export const INITIALIZE = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } };

export async function door({ keepAliveMs = 60_000, maxBodyBytes = 2 ** 20, maxSessions = 10, limit = 2_000 } = {}) {
  const sessions = littleSessions({ scopes: ['', 'files'], limit });
  const faults: string[] = [];
  const websocket = websocketDoor({
    world: realWorld,
    ...{ sessions, settings: { keepAliveMs, maxBodyBytes, maxSessions } },
    logger: { error: (text) => faults.push(text) },
  });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    const principal = String(request.headers['x-principal'] ?? 'me');
    websocket.upgrade((request.url ?? '').slice('/ws/'.length), principal, request, socket, head);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const clients: WebSocket[] = [];
  return {
    ...{ sessions, faults, websocket, port },
    async client(scope = '', protocols: string[] = ['mcp'], principal = 'me') {
      const headers = { 'x-principal': principal };
      const ws = new WebSocket(`ws://127.0.0.1:${port}/ws/${scope}`, protocols, { headers });
      clients.push(ws);
      const messages: any[] = [];
      ws.on('message', (data) => messages.push(JSON.parse(String(data))));
      const closed = new Promise<{ code: number; reason: string }>((resolve) =>
        ws.once('close', (code, reason) => resolve({ code, reason: String(reason) })),
      );
      await new Promise((resolve, reject) => ws.once('open', resolve).once('error', reject));
      const send = (...frames: object[]) => {
        for (const frame of frames) ws.send(JSON.stringify(frame));
      };
      const answer = (id: unknown) => eventually(() => messages.find((each) => each.id === id) ?? false);
      return { ws, messages, closed, send, answer };
    },
    async [Symbol.asyncDispose]() {
      for (const ws of clients) ws.terminate();
      await websocket.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
export const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params });
