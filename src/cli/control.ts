// The client's end of the daemon's control socket: newline-delimited JSON-RPC, results as the bytes that came.
// A socket that nobody listens on is "not running"; one that closes under a request leaves its outcome unknown.

import { connect, type Socket } from 'node:net';
import { OPERATIONS, type OperationName, type ParamsOf, type ResultOf } from '../operations/operations.ts';
import { notificationFrame, requestFrame } from '../protocol/compose.ts';
import { FAILURES, type FailureCode, sentence, TroupeError } from '../protocol/failures.ts';
import { readFrame } from '../protocol/frame.ts';
import { splitLines } from '../protocol/lines.ts';

/** `progress` or `log` of a call in flight; `params` has the call's `id`. */
export type Notice = { readonly method: string; readonly params: Record<string, unknown> };

export type Pending = {
  readonly result: Promise<Buffer>;
  /** Asks the daemon to cancel; the result still settles, with the outcome. */
  readonly cancel: () => void;
};

export type Control = {
  /** Params are given as JSON where their bytes must not change. */
  readonly request: <Name extends OperationName>(
    name: Name,
    params: ParamsOf<Name> | Buffer,
    onNotice?: (notice: Notice) => void,
  ) => Pending;
  /** A request whose result is plain data. */
  readonly ask: <Name extends OperationName>(name: Name, ...params: Given<Name>) => Promise<ResultOf<Name>>;
  readonly close: () => void;
};

type Given<Name extends OperationName> =
  Record<string, never> extends ParamsOf<Name> ? [params?: ParamsOf<Name>] : [params: ParamsOf<Name>];

type Waiter = {
  readonly resolve: (result: Buffer) => void;
  readonly reject: (error: TroupeError) => void;
  readonly onNotice: ((notice: Notice) => void) | undefined;
};

/** By the patience that the table of operations names. */
const LIMIT_MS = { short: 15_000, long: 180_000 };
const NO_PARAMS = Buffer.from('{}');
const MAX_REPLY_BYTES = 1 << 30;
/** The daemon has judged the depth of what servers say; its own wrapping comes on top. */
const MAX_DEPTH = 1000;

export async function connectControl(path: string): Promise<Control> {
  const socket = await open(path);
  const waiting = new Map<string, Waiter>();
  let lastId = 0;
  const fail = (error: TroupeError): void => {
    for (const waiter of waiting.values()) waiter.reject(error);
    waiting.clear();
    socket.destroy();
  };
  const lines = splitLines({
    maxBytes: MAX_REPLY_BYTES,
    onLine: (line) => receive(line, waiting, fail),
    onTooLong: () => fail(new TroupeError('tooLarge', 'the answer of troupe is too large for the command line')),
  });
  socket.on('data', (chunk: Buffer) => lines.push(chunk));
  socket.on('error', () => {}); // 'close' follows and tells everyone who waits
  socket.on('close', () => fail(gone()));

  const request: Control['request'] = (name, params, onNotice) => {
    if (socket.destroyed) return { result: Promise.reject(gone()), cancel: () => {} };
    const id = ++lastId;
    const answered = new Promise<Buffer>((resolve, reject) => waiting.set(String(id), { resolve, reject, onNotice }));
    socket.write(requestFrame(id, name, jsonOf(params)));
    const { patience } = OPERATIONS[name];
    const result = patience === 'endless' ? answered : within(LIMIT_MS[patience], name, answered);
    return { result, cancel: () => void socket.write(notificationFrame('cancel', jsonOf({ id }))) };
  };
  return {
    request,
    ask: async (name, ...[params]) => JSON.parse((await request(name, params ?? NO_PARAMS).result).toString()),
    close: () => void socket.destroy(),
  };
}

/** Connects, lets `use` talk, and closes whatever happens. */
export async function withControl<Result>(path: string, use: (control: Control) => Promise<Result>): Promise<Result> {
  const control = await connectControl(path);
  try {
    return await use(control);
  } finally {
    control.close();
  }
}

async function within(limitMs: number, method: string, answered: Promise<Buffer>): Promise<Buffer> {
  const silence = `troupe runs but did not answer ${method} within ${limitMs / 1000} s; see \`troupe logs\``;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TroupeError('timeout', silence)), limitMs);
  });
  return Promise.race([answered, late]).finally(() => clearTimeout(timer));
}

const gone = (): TroupeError =>
  new TroupeError('lost', 'troupe went away before it answered, so the outcome is unknown; see `troupe logs`');

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => reject(unreachable(error, path)));
  });
}

function unreachable(error: NodeJS.ErrnoException, path: string): TroupeError {
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new TroupeError(
      'unauthorized',
      `the control socket ${path} belongs to another user; run troupe as its owner`,
    );
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED' || error.code === 'ENOTDIR')
    return new TroupeError('unavailable', `troupe is not running; start it with \`${upFor(path)}\``, { cause: error });
  return new TroupeError('unavailable', `the control socket ${path} cannot be reached: ${sentence(error)}`);
}

/** The socket bears the name of its daemon, if that has one. */
function upFor(path: string): string {
  const instance = /control-([^/]+)\.sock$/.exec(path)?.[1];
  return instance ? `troupe up --instance ${instance}` : 'troupe up';
}

function receive(line: Buffer, waiting: Map<string, Waiter>, fail: (error: TroupeError) => void): void {
  const frame = readFrame(line, MAX_DEPTH);
  if (frame.kind === 'result' || frame.kind === 'error') {
    const waiter = waiting.get(frame.id);
    waiting.delete(frame.id);
    if (frame.kind === 'result') waiter?.resolve(frame.result);
    else waiter?.reject(errorOf(frame.error));
  } else if (frame.kind === 'notification') {
    const params = JSON.parse((frame.params ?? '{}').toString());
    waiting.get(String(params.id))?.onNotice?.({ method: frame.method, params });
  } else if (frame.kind === 'malformed') {
    fail(new TroupeError('internal', `the daemon's answer is no JSON-RPC (${frame.why}); is it the same version?`));
  }
}

/** Ours carry their code in `data.troupe`; anything else is the server's own error object. */
function errorOf(error: Buffer): TroupeError {
  const { code, message, data } = JSON.parse(error.toString());
  const ours = data?.troupe as { code?: string } | undefined;
  if (ours?.code && Object.hasOwn(FAILURES, ours.code)) {
    const { code: failure, ...details } = ours;
    return new TroupeError(failure as FailureCode, message, { cause: details });
  }
  return new TroupeError('rejected', `the server refused: ${message} (${code})`, { cause: { rpc: { code, data } } });
}

const jsonOf = (params: object | Buffer): Buffer =>
  Buffer.isBuffer(params) ? params : Buffer.from(JSON.stringify(params));
