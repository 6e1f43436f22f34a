// A raw MCP session over the control socket: the daemon's end of `troupe connect` (docs/TRANSPORTS.md). A shim that ends
// takes its session with it; a daemon that goes leaves it for the shim to come back to.

import type { Socket } from 'node:net';
import { notificationFrame } from '../protocol/compose.ts';
import { TroupeError } from '../protocol/failures.ts';
import { readFrame } from '../protocol/frame.ts';
import { member, stringOf } from '../protocol/json.ts';
import type { Sessions } from '../sessions/host.ts';
import type { World } from '../world/world.ts';
import { serveConnection } from './connections.ts';
import { outlet } from './outlet.ts';

export type Pipe = {
  /** The answer to the request that turned the connection into a session's. */
  readonly answer: Buffer;
  take(line: Buffer): void;
  /** The daemon stops: requests in flight are answered, then the connection ends and the session stays. */
  finish(): void;
};
export type PipeDoor = (socket: Socket, params: Buffer) => Pipe;

/** Only the owner of the daemon may open the socket. */
const OWNER = '_';

export type PipeOptions = {
  readonly world: World;
  readonly sessions: Sessions;
  readonly onFault: (error: unknown) => void;
};

export const pipeDoor =
  ({ world, sessions, onFault }: PipeOptions): PipeDoor =>
  (socket, params) => {
    const scope = textIn(params, 'scope');
    const wanted = textIn(params, 'session');
    if (!sessions.hasScope(scope)) throw new TroupeError('unknownServer', unknown(scope));
    const out = outlet({
      socket,
      reader: socket,
      write: (frames) => socket.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames)),
      onFlood: () => socket.destroy(),
    });
    const found = wanted === '' ? undefined : sessions.find(wanted, OWNER);
    const resumed = found?.door === 'stdio' && found.scope === scope ? found : undefined;
    const connection = serveConnection({
      world,
      sessions,
      principal: OWNER,
      door: 'stdio',
      scope,
      via: textIn(params, 'via'),
      resumed,
      send: out.send,
      onFault,
      onOpen: ({ id }) => out.send(notificationFrame('troupe/session', Buffer.from(JSON.stringify({ session: id })))),
      onEnded: hangUp,
    });
    function hangUp(): void {
      connection.close('kept');
      out.flush();
      socket.end();
    }
    // Only the other end can have caused these: the host is gone, and its session with it.
    for (const event of ['end', 'error'] as const) socket.once(event, () => connection.close('ended'));
    socket.once('close', () => connection.close('kept'));
    return {
      answer: Buffer.from(JSON.stringify({ resumed: resumed !== undefined, pid: process.pid })),
      take: (line) => connection.take(readFrame(line), line.length),
      finish: () => void connection.drain().then(hangUp),
    };
  };

const textIn = (params: Buffer, key: string): string => stringOf(member(params, key) ?? Buffer.alloc(0)) ?? '';

const unknown = (scope: string): string =>
  scope.startsWith('@')
    ? `there is no profile ${scope}; the configuration names them under x-troupe.profiles`
    : `there is no server ${scope}; troupe ps lists them`;
