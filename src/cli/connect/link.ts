// One connection of the shim to the daemon: it asks for an MCP session over the control socket, and from the answer on the
// socket carries MCP. That no daemon is there is an error for the caller to deal with.

import { connect, type Socket } from 'node:net';
import { requestFrame } from '../../protocol/compose.ts';
import { type FailureCode, sentence, TroupeError } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import { member, stringOf } from '../../protocol/json.ts';
import { splitLines } from '../../protocol/lines.ts';

export type Link = {
  readonly isResumed: boolean;
  /** The daemon's process. */
  readonly pid: number;
  readonly socket: Socket;
  /** Hands over the daemon's lines, those that came since the connection was opened included. */
  listen(onLine: (line: Buffer) => void): void;
};
export type Wanted = { readonly path: string; readonly scope: string; readonly session: string; readonly via: string };

/** The daemon bounds the messages of its servers; this only keeps a line from growing for ever. */
const MAX_LINE_BYTES = 2 ** 30;
const NOBODY = ['ENOENT', 'ECONNREFUSED', 'ENOTDIR', 'ECONNRESET', 'EPIPE'];

/** Rejects with `unavailable` when no daemon is there; any other error will not pass by itself. */
export function openLink({ path, scope, session, via }: Wanted): Promise<Link> {
  return new Promise((resolve, reject) => {
    const early: Buffer[] = [];
    let onLine = (line: Buffer): void => void early.push(line);
    const answered = (line: Buffer): void => {
      const frame = readFrame(line);
      if (frame.kind !== 'result') {
        reject(refusalIn(frame));
        return void socket.destroy();
      }
      take = (next) => onLine(next);
      const listen: Link['listen'] = (listener) => {
        onLine = listener;
        for (const each of early) listener(each);
      };
      const [resumed, pid] = ['resumed', 'pid'].map((key) => member(frame.result, key)?.toString());
      resolve({ isResumed: resumed === 'true', pid: Number(pid), socket, listen });
    };
    let take = answered;
    const lines = splitLines({
      maxBytes: MAX_LINE_BYTES,
      onLine: (line: Buffer) => take(line),
      onTooLong: () => socket.destroy(),
    });
    const socket = connect(path);
    socket.on('data', lines.push);
    socket.on('error', (error: NodeJS.ErrnoException) => reject(unreachable(error, path)));
    socket.on('close', () => reject(new TroupeError('unavailable', 'troupe went away')));
    socket.write(requestFrame(1, 'mcp', Buffer.from(JSON.stringify({ scope, session, ...(via && { via }) }))));
  });
}

function unreachable(error: NodeJS.ErrnoException, path: string): TroupeError {
  if (NOBODY.includes(error.code ?? '')) return new TroupeError('unavailable', 'troupe is not running');
  const isForbidden = error.code === 'EACCES' || error.code === 'EPERM';
  return isForbidden
    ? new TroupeError('unauthorized', `the control socket ${path} belongs to another user; run troupe as its owner`)
    : new TroupeError('internal', `the control socket ${path} cannot be reached: ${sentence(error)}`);
}

function refusalIn(frame: Frame): TroupeError {
  const error = frame.kind === 'error' ? frame.error : Buffer.from('{}');
  const [message, data] = [member(error, 'message'), member(error, 'data')];
  const troupe = data && member(data, 'troupe');
  const code = troupe && member(troupe, 'code');
  const text = (value: Buffer | undefined): string | undefined => value && stringOf(value);
  return new TroupeError(
    (text(code) as FailureCode) ?? 'internal',
    text(message) ?? 'the daemon is of another version',
  );
}
