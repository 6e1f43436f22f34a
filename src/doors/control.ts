// The daemon's own door: a unix socket that only its owner may open, newline-delimited JSON-RPC, the CLI on the other end.
// A connection that closes cancels its calls: whoever pressed Ctrl-C does not wait for the answer. A daemon that drains
// takes no further connection, and lets go of each one it has when the calls made there are answered.

import { randomUUID } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Call, Signal } from '../calls/call.ts';
import type { Handlers } from '../operations/operation.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { errorObject, type Failure, sentence, TroupeError } from '../protocol/failures.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import { member, stringOf } from '../protocol/json.ts';
import { splitLines } from '../protocol/lines.ts';
import { isCall } from '../protocol/methods.ts';
import type { Pipe, PipeDoor } from './pipe.ts';

export type Calls = {
  submit(call: Call): boolean;
  cancel(principal: string, requestId: string, why: string): boolean;
};

const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const OWNER = '_';
const EMPTY = Buffer.from('{}');

/** `mcp` turns a connection into an MCP session of its own. */
export function openControl(
  path: string,
  calls: Calls,
  handlers: Handlers,
  mcp?: PipeDoor,
): Promise<{ close(): Promise<void> }> {
  const connections = new Set<Connection>();
  const server = createServer((socket) => {
    const connection = serve(socket, calls, handlers, mcp);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
    socket.on('error', () => socket.destroy());
  });
  ownDirectory(dirname(path));
  rmSync(path, { force: true }); // left by a daemon that was killed: we hold the lock, so nobody listens there
  return listen(server, path, connections);
}

type Connection = { finish(): void };

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

function listen(server: Server, path: string, connections: Set<Connection>): Promise<{ close(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new TroupeError('unavailable', `cannot listen on ${path}: ${sentence(cause)}`, { cause }));
    });
    server.listen(path, () => {
      chmodSync(path, 0o600);
      const close = async () => {
        server.close();
        for (const connection of connections) connection.finish();
      };
      resolve({ close });
    });
  });
}

function serve(socket: Socket, calls: Calls, handlers: Handlers, mcp: PipeDoor | undefined): Connection {
  const inFlight = new Map<string, string>();
  const gone = new AbortController();
  let isFinishing = false;
  let pipe: Pipe | undefined;
  const send = (frame: Buffer) => socket.writable && socket.write(frame);
  const fail = (id: string, failure: Failure) => send(errorFrame(id, errorObject(failure)));
  const lines = splitLines({
    maxBytes: MAX_FRAME_BYTES,
    onLine: (line) => (pipe ? pipe.take(line) : take(readFrame(line))),
    onTooLong: () => socket.destroy(),
  });
  socket.on('data', lines.push);
  socket.on('close', () => {
    gone.abort();
    for (const requestId of inFlight.values()) calls.cancel(OWNER, requestId, 'the caller went away');
  });

  function take(frame: Frame): void {
    if (frame.kind === 'request' && frame.method === 'call') return begin(frame.id, frame.params ?? EMPTY);
    if (frame.kind === 'request' && frame.method === 'mcp' && mcp) return become(frame.id, mcp, frame.params);
    if (frame.kind === 'request') return void answer(frame.id, frame.method, frame.params);
    if (frame.kind === 'notification' && frame.method === 'cancel') return cancel(frame.params);
    if (frame.kind === 'malformed') fail(frame.id ?? 'null', failure('malformed', frame.why));
  }

  /** From the next line on, whatever comes is MCP. */
  function become(id: string, open: PipeDoor, params: Buffer = EMPTY): void {
    try {
      pipe = open(socket, params);
      send(resultFrame(id, pipe.answer));
    } catch (error) {
      fail(id, thrown(error));
    }
  }

  async function answer(id: string, method: string, params: Buffer | undefined): Promise<void> {
    const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined;
    if (!handler)
      return void fail(id, failure('unsupported', `the daemon has no method ${method}; is it another version?`));
    try {
      const value = await handler(params ? JSON.parse(params.toString()) : {}, params ?? EMPTY, gone.signal);
      send(resultFrame(id, Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value ?? {}))));
    } catch (error) {
      fail(id, thrown(error));
    }
  }

  function begin(id: string, params: Buffer): void {
    const text = (key: string) => stringOf(member(params, key) ?? Buffer.alloc(0));
    const timeoutMs = Number(member(params, 'timeoutMs')?.toString() ?? Number.NaN);
    const inner = member(params, 'params') ?? Buffer.from('{}');
    const [server, method] = [text('server') ?? '', text('method') ?? ''];
    if (!isCall(method)) return void fail(id, failure('unsupported', `${method || 'nothing'} is not a method to call`));
    const requestId = randomUUID();
    inFlight.set(id, requestId);
    const isKnown = calls.submit({
      ...{ requestId, server, method, name: nameOf(inner), params: inner, principal: OWNER, door: 'control' },
      ...(timeoutMs > 0 && { timeoutMs }),
      isCancellable: true,
      onSignal: (signal) => send(notificationFrame(signal.type, signalParams(id, signal))),
      settle(outcome) {
        inFlight.delete(id);
        if (outcome.ok) send(resultFrame(id, outcome.result));
        else fail(id, outcome.failure);
        if (isFinishing) finish();
      },
    });
    if (isKnown) return;
    inFlight.delete(id);
    fail(id, failure('unknownServer', `there is no server ${server}; troupe ps lists them`));
  }

  function cancel(params: Buffer | undefined): void {
    const id = params && member(params, 'id')?.toString();
    const requestId = id && inFlight.get(id);
    if (requestId) calls.cancel(OWNER, requestId, 'the caller cancelled it');
  }

  function finish(): void {
    if (pipe) return pipe.finish();
    isFinishing = true;
    if (inFlight.size === 0) socket.end();
  }

  return { finish };
}

const failure = (code: Failure['code'], message: string): Failure => ({ code, delivery: 'not sent', message });

function thrown(error: unknown): Failure {
  if (!(error instanceof TroupeError)) return failure('internal', sentence(error));
  const { failure: whole } = (error.cause ?? {}) as { failure?: Failure };
  return whole ?? failure(error.code, error.message);
}

/** What the call is about, for audit and for the allow list. */
const nameOf = (params: Buffer): string => {
  const value = member(params, 'name') ?? member(params, 'uri');
  return (value && stringOf(value)) ?? '';
};

function signalParams(id: string, signal: Signal): Buffer {
  return Buffer.from(JSON.stringify({ ...fieldsOf(signal), id: JSON.parse(id) }));
}

function fieldsOf(signal: Signal): object {
  if (signal.type === 'log') return JSON.parse(signal.params.toString());
  if (signal.type === 'ask') return { ask: signal.id, kind: signal.kind, expiresAt: signal.expiresAt };
  const { type: _, ...progress } = signal;
  return progress;
}
