// The listening socket: where it listens, how long it waits for a request, and the bare status for bytes so broken that they
// never become one.

import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { inUrl } from '../../config/addresses.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import type { World } from '../../world/world.ts';
import type { Timing } from './context.ts';
import { keepRoom, type Room } from './room.ts';

const MAX_HEAD_BYTES = 16_384;
/** Longer than hosts keep a connection for later: one that we close under a request is an error to them. */
const IDLE_MS = 65_000;

export type ListeningOptions = {
  readonly world: World;
  readonly timing: Timing;
  /** How many connections there may be, whatever they are used for. */
  readonly maxConnections: number;
};

export function serverFor({ world, timing, maxConnections }: ListeningOptions): { server: Server; room: Room } {
  const { headMs, bodyMs, checkMs } = timing;
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: headMs,
    requestTimeout: bodyMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: IDLE_MS,
    keepAlive: true,
  });
  const room = keepRoom(server, maxConnections, world);
  server.on('clientError', (error, socket) => hangUp(socket, room.response(socket), statusOf(error)));
  return { server, room };
}

function hangUp(socket: Duplex, answer: ServerResponse | undefined, status: number): void {
  const isInAnswer = answer?.headersSent && !answer.writableFinished;
  if (!socket.writable || isInAnswer) return void socket.destroy(); // a status would stand in the middle of the answer
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
  socket.end(head, () => socket.destroy());
}

const STATUSES: { readonly [code: string]: number } = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

const statusOf = ({ code }: NodeJS.ErrnoException): number => STATUSES[code ?? ''] ?? 400;

// ── The address ──────────────────────────────────────────────────────────────

export type Address = {
  readonly host: string;
  /** 0 picks any that is free. */
  readonly port: number;
};

/** Resolves with the port, once it is open; else throws the sentence that says why it cannot be. */
export async function listen(server: Server, { host, port }: Address): Promise<number> {
  try {
    return await bind(server, host, port);
  } catch (cause) {
    throw new TroupeError('unavailable', complaint(cause, host, port), { cause });
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function complaint(cause: unknown, host: string, port: number): string {
  const where = `${inUrl(host)}:${port}`;
  switch (codeOf(cause)) {
    case 'EADDRINUSE':
      return `${where} is taken; stop what listens there, or choose another address with --http HOST:PORT`;
    case 'EACCES':
      return `${where} needs more rights than troupe has; choose a port above 1023 with --http HOST:PORT`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine; choose another with --http HOST:PORT`;
    default:
      return `cannot listen on ${where}: ${sentence(cause)}`;
  }
}

const codeOf = (cause: unknown): unknown => (cause instanceof Error && 'code' in cause ? cause.code : undefined);
