// Doors that carry a whole session on one connection: a WebSocket, and the control socket that became a session (`troupe connect`).
// A batch is one connection; a ping behind the batch tells when all of it was taken.

import { connect } from 'node:net';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { messages, variantOf, withOpenIds } from '../arbitraries/messages.ts';
import { OpenIds, within } from '../puppets/puppet.ts';
import { stage, type Target } from '../target.ts';

const PATIENCE_MS = 5_000;
const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'fuzz', version: '1' } };
const INITIALIZE = JSON.stringify({ jsonrpc: '2.0', id: 'hello', method: 'initialize', params });
const FENCE = JSON.stringify({ jsonrpc: '2.0', id: 'fence', method: 'ping' });

type Wire = {
  send(message: Buffer | string): void;
  onLine(listener: (line: string) => void): void;
  onClose(listener: () => void): void;
  close(): void;
};

/** Says hello, then all inputs, then the ping; resolves with its answer, or when the daemon hangs up. */
async function converse(wire: Wire, inputs: readonly string[]): Promise<void> {
  const open = new OpenIds();
  await within(
    PATIENCE_MS,
    new Promise<void>((resolve) => {
      wire.onClose(resolve);
      wire.onLine((line) => {
        const { id, method } = JSON.parse(line);
        if (id === 'fence' && method === undefined) return resolve();
        if (method !== undefined && id !== undefined) open.add(id);
        if (id !== 'hello') return;
        for (const input of inputs) wire.send(withOpenIds(input, open.all));
        wire.send(FENCE);
      });
      wire.send(INITIALIZE);
    }),
  );
  wire.close();
}

function inBatches(batch: number, open: () => Promise<Wire>) {
  return async (inputs: readonly string[]): Promise<void> => {
    for (let at = 0; at < inputs.length; at += batch) await converse(await open(), inputs.slice(at, at + batch));
  };
}

export const websocket: Target<string> = {
  name: 'websocket',
  inputs: messages,
  vary: variantOf,
  batch: 100,
  async open({ d }) {
    const url = `${(await d.http()).replace('http', 'ws')}/ws`;
    return stage(
      inBatches(100, async () => {
        const ws = new WebSocket(url, 'mcp');
        ws.on('error', () => {}); // 'close' follows
        await new Promise((resolve) => ws.once('open', resolve).once('close', resolve));
        return {
          send: (message) => ws.readyState === 1 && ws.send(message),
          onLine: (listener) => void ws.on('message', (data) => listener(String(data))),
          onClose: (listener) => void (ws.readyState === 1 ? ws.on('close', listener) : listener()),
          close: () => ws.terminate(),
        };
      }),
    );
  },
};

export const pipe: Target<string> = {
  name: 'pipe',
  inputs: messages,
  vary: variantOf,
  batch: 100,
  open: async ({ d }) =>
    stage(
      inBatches(100, async () =>
        socketWire(join(d.state, 'control.sock'), '{"jsonrpc":"2.0","id":"mcp","method":"mcp","params":{}}'),
      ),
    ),
};

/** The control socket itself; what would end the daemon, or the neighbour, is left out. */
export const control: Target<string> = {
  name: 'control',
  inputs: messages.map(withoutHarm),
  vary: (...about) => withoutHarm(variantOf(...about)),
  batch: 100,
  open: async ({ d }) =>
    stage(async (inputs) => {
      for (let at = 0; at < inputs.length; at += 100) {
        const wire = socketWire(join(d.state, 'control.sock'));
        const isTaken = new Promise<void>((resolve) => {
          wire.onClose(resolve);
          wire.onLine((line) => JSON.parse(line).id === 'fence' && resolve());
        });
        for (const input of inputs.slice(at, at + 100)) wire.send(Buffer.from(input, 'latin1'));
        wire.send(FENCE);
        await within(PATIENCE_MS, isTaken);
        wire.close();
      }
    }),
};

const OPERATIONS = [
  'status',
  'env',
  'call',
  'list',
  'inbox',
  'answer',
  'roots',
  'rootsAdd',
  'tasks',
  'taskGet',
  'taskCreate',
  'taskCancel',
  'login',
  'logout',
  'nothing',
];

/** Methods of MCP become operations; `echo` is the neighbour, and is let alone. */
function withoutHarm(message: string): string {
  return message
    .replace(/"method":"([^"]*)"/g, (_, name: string) => `"method":"${OPERATIONS[name.length % OPERATIONS.length]}"`)
    .replaceAll('"echo"', '"victim"');
}

function socketWire(path: string, first?: string): Wire {
  const socket = connect(path).on('error', () => {}); // 'close' follows
  let rest = '';
  const listeners: ((line: string) => void)[] = [];
  socket.on('data', (chunk) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) for (const listener of listeners) listener(line);
  });
  if (first) socket.write(`${first}\n`);
  return {
    send: (message) => socket.write(Buffer.concat([Buffer.from(message), Buffer.from('\n')])),
    onLine: (listener) => void listeners.push(listener),
    onClose: (listener) => void socket.on('close', listener),
    close: () => socket.destroy(),
  };
}
