// Requests that want another protocol. Those for a WebSocket are handed on once they were let in; the others are served as if
// they had not asked: Java's HTTP client, for one, asks for HTTP/2 in every first request.

import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorFrame } from '../../protocol/compose.ts';
import { FAILURES } from '../../protocol/failures.ts';
import type { Scope, Sessions } from '../../sessions/host.ts';
import { createTally } from './context.ts';
import type { Gate, Verdict } from './gate.ts';
import { INVALID_REQUEST, routeOf } from './request.ts';
import type { Room } from './room.ts';

export type OnUpgrade = (scope: Scope, principal: string, req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export type UpgradeOptions = {
  readonly server: Server;
  readonly gate: Gate;
  readonly room: Room;
  readonly sessions: Sessions;
  readonly onUpgrade: OnUpgrade | undefined;
};

export type Upgrades = ReturnType<typeof takeUpgrades>;

export function takeUpgrades({ server, gate, room, sessions, onUpgrade }: UpgradeOptions) {
  const handedOn = new Set<Duplex>();
  const open = createTally();
  let isClosing = false;

  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    if (isAnswerOwed(socket)) return void socket.destroy();
    // Before anything is added to the connection, which may come by here any number of times.
    if (req.method !== 'GET' || req.headers.upgrade?.toLowerCase() !== 'websocket')
      return serveAgain(server, req, socket, head);
    socket.on('error', () => socket.destroy());
    if (room.isRefused(socket))
      return refuse(socket, 503, FAILURES.busy.rpc, 'troupe has as many connections as it can take; try again soon');
    const verdict = gate(req);
    if (verdict instanceof Promise) void verdict.then((found) => judged(req, socket, head, found));
    else judged(req, socket, head, verdict);
  });

  function judged(req: IncomingMessage, socket: Socket, head: Buffer, admission: Verdict): void {
    if (socket.destroyed) return; // the client has left meanwhile
    if (admission.is === 'refused')
      return refuse(socket, admission.status, FAILURES.unauthorized.rpc, admission.message, admission.headers);
    if (admission.is !== 'admitted') return void socket.destroy(); // a GET is never a preflight
    const route = routeOf(req.url ?? '');
    if (route?.endpoint !== 'ws' || !onUpgrade)
      return refuse(socket, 404, INVALID_REQUEST, 'there is no WebSocket here; try /ws');
    if (!sessions.hasScope(route.scope))
      return refuse(
        socket,
        404,
        FAILURES.unknownServer.rpc,
        'there is no such server or profile; troupe ps lists them',
      );
    if (isClosing) return refuse(socket, 503, FAILURES.unavailable.rpc, 'troupe is stopping; come back soon');
    handedOn.add(socket);
    open.add();
    socket.on('close', () => {
      handedOn.delete(socket);
      open.remove();
    });
    onUpgrade(route.scope, admission.principal, req, socket, head);
  }

  return {
    refuseFurther(): void {
      isClosing = true;
    },
    whenNone: open.whenNone,
    /** The WebSocket door closes its connections itself; these are the ones that are still there when time is up. */
    destroyAll(): void {
      for (const socket of handedOn) socket.destroy();
    },
  };
}

/**
 * Whether an earlier request on the connection has no answer yet: Node hands on the wish to upgrade without waiting for that. The
 * connection cannot be given to anybody then, or two would write on it; a client that waits for its answers never comes to this.
 * The response that a connection has is told by Node in this property only.
 */
function isAnswerOwed(socket: Socket & { readonly _httpMessage?: ServerResponse | null }): boolean {
  return Boolean(socket._httpMessage);
}

function refuse(socket: Socket, status: number, code: number, message: string, headers: readonly string[] = []): void {
  const body = errorFrame('null', Buffer.from(JSON.stringify({ code, message })));
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, 'Connection: close', 'Content-Type: application/json'];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push(`Content-Length: ${body.length}`, '', '');
  socket.end(Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), body]));
  socket.resume();
}

const CHANGES = new Set(['upgrade', 'connection', 'http2-settings']);

/** Node has let go of the connection; it takes it back as a new one that begins with the same request, less the upgrade. */
function serveAgain(server: Server, req: IncomingMessage, socket: Socket, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] ?? '';
    if (!CHANGES.has(name.toLowerCase())) lines.push(`${name}: ${req.rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
