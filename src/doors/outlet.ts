// The way out of a connection: all frames of one turn of the event loop leave in one write. A peer that does not read is
// not read from either; what it leaves unread is bounded, and beyond the bound it is given up.

import type { Duplex } from 'node:stream';
import { leavesTooMuch } from './unread.ts';

export type OutletOptions = {
  readonly socket: Duplex;
  /** What we stop reading from while the peer has too much unread. */
  readonly reader: { pause(): unknown; resume(): unknown };
  /** Writes frames, each with its newline, in the form of the transport. */
  readonly write: (frames: readonly Buffer[]) => void;
  /** Called once; nothing is written after it. */
  readonly onFlood: () => void;
};
export type Outlet = { send(frame: Buffer): void; flush(): void };

const MANY_BYTES = 4 * 1024 * 1024;
/** One answer may be larger: what counts is what was unread before it. */
const TOO_MANY_BYTES = 64 * 1024 * 1024;

export function outlet({ socket, reader, write, onFlood }: OutletOptions): Outlet {
  let frames: Buffer[] = [];
  let bytes = 0;
  let isPaused = false;
  let isOver = false;

  function flush(): void {
    if (frames.length === 0) return;
    const batch = frames;
    frames = [];
    bytes = 0;
    if (isOver || !socket.writable) return;
    write(batch);
    if (isPaused || socket.writableLength <= MANY_BYTES) return;
    isPaused = true;
    reader.pause();
  }

  socket.on('drain', () => {
    if (!isPaused) return;
    isPaused = false;
    reader.resume();
  });

  return {
    flush,
    send(frame) {
      if (isOver) return;
      if (socket.writableLength + bytes > TOO_MANY_BYTES || leavesTooMuch(socket, TOO_MANY_BYTES)) {
        isOver = true;
        return onFlood();
      }
      bytes += frame.length;
      if (frames.push(frame) === 1) setImmediate(flush);
    },
  };
}
