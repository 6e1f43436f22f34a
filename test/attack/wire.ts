// Bytes to a door, as no client library would send them, and what came back.

import { connect, type Socket } from 'node:net';

/** What comes back for these very bytes: until the other side closes, or has been silent for a while. */
export function sendRaw(port: number, bytes: string | Buffer, silentMs = 400): Promise<string> {
  return new Promise((resolve) => {
    let said = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setTimeout(silentMs, () => socket.destroy());
    socket.on('data', (chunk) => {
      said += chunk.toString('latin1');
    });
    socket.on('error', () => {}); // a reset is an end too
    socket.on('close', () => resolve(said));
  });
}

/** The statuses of all responses in it, in their order. */
export const statusesOf = (said: string): number[] =>
  [...said.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

export function openSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
  });
}

export const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'attack', version: '1' } },
};
