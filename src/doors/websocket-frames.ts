// Text frames of RFC 6455 as a server sends them: whole, unmasked, one for each message. Written here rather than by
// `ws`, so that many small ones become one buffer and one write.

import type { Duplex } from 'node:stream';

const FINAL_TEXT = 0x81;
const LONGEST_HEAD = 10;
/** Beyond so many bytes a copy costs more than further buffers in the same write. */
const SMALL_BYTES = 64 * 1024;

/** Each message comes with its newline, which stays behind. */
export function writeMessages(socket: Duplex, messages: readonly Buffer[]): void {
  let size = 0;
  for (const message of messages) size += message.length + LONGEST_HEAD;
  if (size <= SMALL_BYTES) return void socket.write(joined(messages, size));
  socket.cork();
  for (const message of messages) {
    const head = Buffer.allocUnsafe(LONGEST_HEAD);
    socket.write(head.subarray(0, writeHead(head, 0, message.length - 1)));
    socket.write(message.subarray(0, -1));
  }
  socket.uncork();
}

function joined(messages: readonly Buffer[], size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  for (const message of messages) {
    at = writeHead(bytes, at, message.length - 1);
    at += message.copy(bytes, at, 0, message.length - 1);
  }
  return bytes.subarray(0, at);
}

/** Returns where the payload begins. */
function writeHead(bytes: Buffer, at: number, length: number): number {
  bytes[at] = FINAL_TEXT;
  if (length < 126) {
    bytes[at + 1] = length;
    return at + 2;
  }
  if (length < 65_536) {
    bytes[at + 1] = 126;
    return bytes.writeUInt16BE(length, at + 2);
  }
  bytes[at + 1] = 127;
  bytes.writeUInt32BE(Math.floor(length / 2 ** 32), at + 2);
  return bytes.writeUInt32BE(length % 2 ** 32, at + 6);
}
