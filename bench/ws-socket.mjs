// The smallest WebSocket client: text frames, no extensions, a mask of zeros so that masking costs nothing.

import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** Resolves with `{ send(text), close() }` when the upgrade is done. `onMessage(text)`, `onClose()`. */
export function openWebSocket(url, { onMessage, onClose }) {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  let outgoing = [];
  const flush = () => {
    if (outgoing.length > 0 && !socket.destroyed) socket.write(Buffer.concat(outgoing));
    outgoing = [];
  };
  /** What one turn sends goes out in one write. */
  const send = (text, opcode = TEXT) => {
    if (outgoing.length === 0) queueMicrotask(flush);
    outgoing.push(frameOf(Buffer.from(text), opcode));
  };
  const onFrame = (opcode, payload) => {
    if (opcode === TEXT) onMessage(payload.toString());
    else if (opcode === PING) send(payload, PONG);
    else if (opcode === CLOSE) socket.end();
  };
  return new Promise((resolve, reject) => {
    let read = (chunk) => {
      const end = chunk.indexOf('\r\n\r\n');
      if (!chunk.toString('latin1', 0, 12).endsWith('101')) return reject(new Error(chunk.toString('latin1', 0, 60)));
      read = reader(onFrame);
      resolve({ send, close: () => socket.destroy() });
      if (end + 4 < chunk.length) read(chunk.subarray(end + 4));
    };
    socket.on('data', (chunk) => read(chunk));
    socket.on('error', reject);
    socket.on('close', onClose);
    const key = randomBytes(16).toString('base64');
    socket.write(
      `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n\r\n`,
    );
  });
}

function frameOf(payload, opcode) {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const frame = Buffer.alloc(6 + size + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) frame.writeUInt16BE(length, 2);
  if (size === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  payload.copy(frame, 6 + size);
  return frame;
}

/** A message in several frames does not come from the servers measured here. */
function reader(onFrame) {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length ? Buffer.concat([rest, chunk]) : chunk;
    while (rest.length >= 2) {
      const short = rest[1] & 0x7f;
      const from = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (rest.length < from) return;
      const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
      if (rest.length < from + length) return;
      onFrame(rest[0] & 0x0f, rest.subarray(from, from + length));
      rest = rest.subarray(from + length);
    }
  };
}
