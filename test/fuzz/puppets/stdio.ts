// A server that is a process: process.mjs, whose strings are a socket.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { withOpenIds } from '../arbitraries/messages.ts';
import { OpenIds, type Puppet, within } from './puppet.ts';

const PATIENCE_MS = 5_000;
const NEWLINE = Buffer.from('\n');

export async function stdioPuppet(): Promise<Puppet<string> & { readonly port: number }> {
  let life: Life | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
    life = createLife(socket);
    server.emit('life');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async say(inputs) {
      if (!life?.isThere()) await within(PATIENCE_MS, once(server, 'life'));
      await life?.say(inputs);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

type Life = ReturnType<typeof createLife>;

/** One process, from its start to its end. */
function createLife(socket: Socket) {
  const open = new OpenIds();
  let fence = 0;
  socket.on('error', () => {}); // 'close' follows
  const closed = new Promise((resolve) => socket.once('close', resolve));
  createInterface(socket).on('line', (line) => {
    const told = JSON.parse(line) as { fence?: number; open?: string | number };
    if (told.open !== undefined) open.add(told.open);
    else socket.emit(`fence ${told.fence}`);
  });
  return {
    isThere: () => socket.readyState === 'open',
    async say(inputs: readonly string[]): Promise<void> {
      fence += 1;
      const lines = inputs.flatMap((input) => [withOpenIds(input, open.all), NEWLINE]);
      const isTaken = Promise.race([new Promise((resolve) => socket.once(`fence ${fence}`, resolve)), closed]);
      socket.write(`${JSON.stringify({ say: Buffer.concat(lines).toString('latin1'), fence })}\n`);
      await within(PATIENCE_MS, isTaken);
    },
  };
}
