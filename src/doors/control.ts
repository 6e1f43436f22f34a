// The daemon's own door: a unix socket that only its owner may open, newline-delimited JSON-RPC, the CLI on the other end.
// A connection that closes cancels its calls: after Ctrl-C nobody waits for the answer. A daemon that drains takes no further
// connection, and ends each one when the calls made on it are answered.

import { randomBytes } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import type { Signal } from '../calls/call.ts';
import { thrownFailure } from '../operations/calls.ts';
import { isFinished, type Ports, perform } from '../operations/operations.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { errorObject, sentence, TroupeError } from '../protocol/failures.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import { member } from '../protocol/json.ts';
import { splitLines } from '../protocol/lines.ts';
import type { Pipe, PipeDoor } from './pipe.ts';

export type ControlOptions = {
  readonly path: string;
  readonly ports: Ports;
  /** Turns a connection into an MCP session of its own. */
  readonly mcp?: PipeDoor;
  /** Those beyond are closed unheard. */
  readonly maxConnections?: number;
};
export type ControlDoor = { close(): Promise<void> };
type Connection = { finish(): void };

const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const EMPTY = Buffer.from('{}');
const CANCELLED = new TroupeError('cancelled', 'the caller cancelled it');
const GONE = new TroupeError('cancelled', 'the caller went away');

export function openControl({ path, ports, mcp, maxConnections }: ControlOptions): Promise<ControlDoor> {
  const connections = new Set<Connection>();
  const server = createServer((socket) => {
    const connection = serve(socket, ports, mcp);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
    socket.on('error', () => socket.destroy());
  });
  if (maxConnections !== undefined) server.maxConnections = maxConnections;
  ownDirectory(dirname(path));
  return listen(server, path, connections);
}

/** A directory in a shared place may have been made by somebody else, who could then stand in for the daemon. */
function ownDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path); // of a link it tells of the link
  const isOurs = process.getuid === undefined || found.uid === process.getuid();
  if (!isOurs || (found.mode & 0o077) !== 0 || !found.isDirectory())
    throw new TroupeError(
      'unauthorized',
      `${path} is open to others; remove it, or set TROUPE_STATE to a shorter path`,
    );
}

/**
 * Listens under another name, shorter than any, and then takes the path, from a daemon that was killed if need be: we hold the lock.
 * On its own Node would remove the path when it closes, whosever socket is there by then.
 */
function listen(server: Server, path: string, connections: Set<Connection>): Promise<ControlDoor> {
  const draft = join(dirname(path), `.${randomBytes(4).toString('hex')}`);
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(new TroupeError('unavailable', `cannot listen on ${path}: ${sentence(cause)}`, { cause }));
    server.once('error', fail);
    server.listen(draft, () => {
      // No descriptor is left for one more connection, for instance: those that are there go on, and the next may be taken.
      server.off('error', fail).on('error', () => {});
      try {
        chmodSync(draft, 0o600);
        renameSync(draft, path);
        resolve({ close: closing(server, path, connections) });
      } catch (cause) {
        server.close();
        fail(cause);
      }
    });
  });
}

function closing(server: Server, path: string, connections: Set<Connection>): () => Promise<void> {
  const { ino } = lstatSync(path);
  return async () => {
    // The number is not given away while we listen. Another one is a successor's, in a directory that was replaced.
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
    server.close();
    for (const connection of connections) connection.finish();
  };
}

/** A request that is worked on: how to give it up, and whether it is answered before the connection ends. */
type Pending = { readonly leaving: AbortController; readonly isFinished: boolean };

function serve(socket: Socket, ports: Ports, mcp: PipeDoor | undefined): Connection {
  const inFlight = new Map<string, Pending>();
  let isFinishing = false;
  let pipe: Pipe | undefined;
  const send = (frame: Buffer) => socket.writable && socket.write(frame);
  const fail = (id: string, error: unknown) => send(errorFrame(id, errorObject(thrownFailure(error))));
  const lines = splitLines({
    maxBytes: MAX_FRAME_BYTES,
    onLine: (line) => (pipe ? pipe.take(line) : take(readFrame(line))),
    onTooLong: () => socket.destroy(),
  });
  socket.on('data', lines.push);
  socket.on('close', () => {
    for (const { leaving } of inFlight.values()) leaving.abort(GONE);
  });

  function take(frame: Frame): void {
    if (frame.kind === 'request' && frame.method === 'mcp' && mcp) return become(frame.id, mcp, frame.params);
    if (frame.kind === 'request') return void answer(frame.id, frame.method, frame.params);
    if (frame.kind === 'notification' && frame.method === 'cancel') return cancel(frame.params);
    if (frame.kind === 'malformed') fail(frame.id ?? 'null', new TroupeError('malformed', frame.why));
  }

  /** From the next line on, whatever comes is MCP. */
  function become(id: string, open: PipeDoor, params: Buffer = EMPTY): void {
    try {
      pipe = open(socket, params);
      send(resultFrame(id, pipe.answer));
    } catch (error) {
      fail(id, error);
    }
  }

  async function answer(id: string, name: string, params: Buffer = EMPTY): Promise<void> {
    const pending = { leaving: new AbortController(), isFinished: isFinished(name) };
    inFlight.set(id, pending);
    const tell = (signal: Signal) => void send(notificationFrame(signal.type, signalParams(id, signal)));
    const caller = { principal: undefined, by: 'troupe answer', signal: pending.leaving.signal, tell };
    try {
      send(resultFrame(id, await perform(ports, name, params, caller)));
    } catch (error) {
      fail(id, error);
    }
    if (inFlight.get(id) === pending) inFlight.delete(id);
    if (isFinishing) finish();
  }

  function cancel(params: Buffer | undefined): void {
    const id = params && member(params, 'id')?.toString();
    if (id) inFlight.get(id)?.leaving.abort(CANCELLED);
  }

  function finish(): void {
    if (pipe) return pipe.finish();
    isFinishing = true;
    if (![...inFlight.values()].some((pending) => pending.isFinished)) socket.end();
  }

  return { finish };
}

function signalParams(id: string, signal: Signal): Buffer {
  return Buffer.from(JSON.stringify({ ...fieldsOf(signal), id: JSON.parse(id) }));
}

function fieldsOf(signal: Signal): object {
  if (signal.type === 'log') return JSON.parse(signal.params.toString());
  if (signal.type === 'ask') return { ask: signal.id, kind: signal.kind, expiresAt: signal.expiresAt };
  const { type: _, ...progress } = signal;
  return progress;
}
