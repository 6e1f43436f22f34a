// MCP over WebSocket (docs/TRANSPORTS.md): one message a frame, one session a connection. All frames of one turn leave in
// one write; a peer that does not read is not read from either, and one that never does is let go.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { HttpSettings } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import { readFrame } from '../protocol/frame.ts';
import type { Scope, Sessions } from '../sessions/host.ts';
import type { World } from '../world/world.ts';
import { type Connection, serveConnection } from './connections.ts';
import { viaOf } from './http/headers.ts';
import { type Outlet, outlet } from './outlet.ts';
import { createQuota } from './quota.ts';
import { writeMessages } from './websocket-frames.ts';

export type WebSocketDoorOptions = {
  readonly world: World;
  readonly sessions: Sessions;
  readonly settings: Pick<HttpSettings, 'maxBodyBytes' | 'maxSessions' | 'keepAliveMs'>;
  readonly logger: { error(text: string): void };
};

/** A connection that became a WebSocket. It is alive while it says something between two beats. */
type Peer = {
  readonly ws: WebSocket;
  readonly out: Outlet;
  readonly connection: Connection;
  beats: number;
  silentBeats: number;
};

const SUBPROTOCOL = 'mcp';
const MISSED_BEATS = 2;
const BEATS_TO_OPEN = 4;
const DRAIN_MS = 10_000;
const GOODBYE_MS = 2_000;
/** RFC 6455 §7.4.1 and the IANA registry; those from 4000 on are for applications. */
const CLOSE = { goingAway: 1001, policy: 1008, tryLater: 1013, ended: 4404 } as const;

/** What all connections of the door share. */
type Shared = WebSocketDoorOptions & {
  readonly peers: Set<Peer>;
  readonly onFault: (error: unknown) => void;
};

export function websocketDoor(options: WebSocketDoorOptions) {
  const { world, sessions, settings, logger } = options;
  const peers = new Set<Peer>();
  const onFault = (error: unknown): void => logger.error(`websocket: ${sentence(error)}`);
  const shared: Shared = { ...options, peers, onFault };
  const quota = createQuota(settings.maxSessions);
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: settings.maxBodyBytes,
    skipUTF8Validation: true, // the frame reader looks itself, and answers
    handleProtocols: () => SUBPROTOCOL,
  });
  const stopBeating = world.every(settings.keepAliveMs, () => peers.forEach(beat));

  return {
    /** The request is one that the HTTP door has let in: its Host, its Origin and its token are good. */
    upgrade(scope: Scope, principal: string, request: IncomingMessage, socket: Duplex, head: Buffer): void {
      if (!offersMcp(request)) return refuse(socket, '400 Bad Request', 'offer the subprotocol mcp, or none');
      if (!sessions.hasScope(scope)) return refuse(socket, '404 Not Found', 'there is no such server or profile');
      const giveBack = quota.take(principal);
      if (!giveBack) return refuse(socket, '503 Service Unavailable', 'too many connections');
      socket.once('close', giveBack);
      server.handleUpgrade(request, socket, head, (ws) =>
        welcome(shared, { ws, socket, principal, scope, via: viaOf(request.headers) }),
      );
    },

    /** Calls in flight are answered first, unless they take too long. */
    async close(): Promise<void> {
      const patience = (ms: number) => new Promise<void>((resolve) => void world.after(ms, resolve));
      stopBeating();
      await Promise.race([Promise.all([...peers].map(({ connection }) => connection.drain())), patience(DRAIN_MS)]);
      const closed = [...peers].map(({ ws, out }) => {
        out.flush();
        ws.close(CLOSE.goingAway, 'troupe is stopping');
        return new Promise((resolve) => ws.once('close', resolve));
      });
      await Promise.race([Promise.all(closed), patience(GOODBYE_MS)]);
      for (const { ws } of peers) ws.terminate();
    },
  };
}

type Arrived = {
  readonly ws: WebSocket;
  readonly socket: Duplex;
  readonly principal: string;
  readonly scope: Scope;
  readonly via: string;
};

function welcome({ world, sessions, peers, onFault }: Shared, { ws, socket, principal, scope, via }: Arrived): void {
  const out = outlet({
    socket,
    reader: ws,
    // After its close frame a connection carries no other.
    write: (frames) => ws.readyState === ws.OPEN && writeMessages(socket, frames),
    onFlood() {
      leave();
      ws.close(CLOSE.tryLater, 'you do not read');
      world.after(GOODBYE_MS, () => ws.terminate());
    },
  });
  const connection = serveConnection({
    world,
    sessions,
    principal,
    door: 'websocket',
    scope,
    via,
    send: out.send,
    onFault,
    onEnded() {
      out.flush();
      ws.close(CLOSE.ended, 'the session has ended');
    },
  });
  const peer: Peer = { ws, out, connection, beats: 0, silentBeats: 0 };
  const isThere = (): void => {
    peer.silentBeats = 0;
  };
  const leave = (): void => {
    peers.delete(peer);
    connection.close('ended');
  };
  peers.add(peer);
  ws.on('message', (message: Buffer) => {
    isThere();
    connection.take(readFrame(message), message.length);
  });
  ws.on('pong', isThere);
  ws.on('error', () => {}); // 'close' follows
  ws.on('close', leave);
}

function beat(peer: Peer): void {
  const { ws, connection } = peer;
  peer.silentBeats += 1;
  peer.beats += 1;
  if (peer.silentBeats > MISSED_BEATS) return ws.terminate();
  if (!connection.isOpen() && peer.beats > BEATS_TO_OPEN) return ws.close(CLOSE.policy, 'nothing was initialized');
  ws.ping();
}

/** Clients that know no subprotocols are welcome; one that asks for others speaks something else. */
function offersMcp({ headers }: IncomingMessage): boolean {
  const offered = headers['sec-websocket-protocol'];
  return offered === undefined || offered.split(',').some((each) => each.trim() === SUBPROTOCOL);
}

function refuse(socket: Duplex, status: string, why: string): void {
  const body = `${why}\n`;
  const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n`;
  socket.on('error', () => {}); // the client left before it was told
  socket.end(`${head}\r\n${body}`);
}
