// The listening socket, how long it waits for whom, and what is so broken that it never becomes a request: whoever sent that
// hears a bare status and nothing else.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Timing } from './visit.ts';

const MAX_HEAD_BYTES = 16_384;
const MAX_CONNECTIONS = 4_096;
/** Longer than hosts keep a connection for later: one that we close under a request is an error to them. */
const IDLE_MS = 65_000;

export function serverFor({ headMs, bodyMs, checkMs }: Timing): Server {
  const server = createServer({
    ...{ maxHeaderSize: MAX_HEAD_BYTES, headersTimeout: headMs, requestTimeout: bodyMs },
    ...{ connectionsCheckingInterval: checkMs, keepAliveTimeout: IDLE_MS, keepAlive: true },
  });
  const newest = new WeakMap<Duplex, ServerResponse>();
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', (req: IncomingMessage, res: ServerResponse) => void newest.set(req.socket, res));
  server.on('clientError', (error, socket) => hangUp(socket, newest.get(socket), statusOf(error)));
  return server;
}

function hangUp(socket: Duplex, answer: ServerResponse | undefined, status: number): void {
  const isInAnswer = answer?.headersSent && !answer.writableFinished;
  if (!socket.writable || isInAnswer) return void socket.destroy(); // a status would stand in the middle of it
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
  socket.end(head, () => socket.destroy());
}

const STATUSES: { readonly [code: string]: number } = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

const statusOf = ({ code }: NodeJS.ErrnoException): number => STATUSES[code ?? ''] ?? 400;
