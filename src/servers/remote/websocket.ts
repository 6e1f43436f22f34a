// The link to a server over WebSocket, subprotocol `mcp`: each text frame is one message. The transport is ours and the
// SDK's, not the specification's. A peer that does not answer pings is gone, whatever its connection looks like.

import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence } from '../../protocol/failures.ts';
import type { Link, LinkEvents } from '../link.ts';
import type { Address } from './address.ts';
import { type Authorizer, isChallenge } from './authorizer.ts';

export type WebSocketOptions = {
  readonly address: Address;
  readonly config: RemoteServer;
  readonly authorizer: Authorizer;
  readonly events: LinkEvents;
};

const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export function webSocketLink({ address, config, authorizer, events }: WebSocketOptions): Link {
  const { settings } = config;
  let socket: WebSocket | undefined;
  let waiting: Buffer[] = [];
  let wasFull = false;
  let isOver = false;
  let isAlive = true;
  let beat: NodeJS.Timeout | undefined;

  async function connect(isSecond: boolean): Promise<void> {
    const headers = { ...config.headers, ...(await authorizer.headers()) };
    if (isOver) return;
    const next = new WebSocket(address.url, ['mcp'], {
      ...{ headers, maxPayload: settings.maxFrameBytes, handshakeTimeout: settings.openMs },
      ...{ perMessageDeflate: false, followRedirects: false },
    });
    socket = next;
    next.on('open', opened);
    next.on('message', (data: Buffer) => {
      if (isOver) return;
      isAlive = true;
      events.onMessage(data);
      events.onChunk();
    });
    next.on('pong', () => {
      isAlive = true;
    });
    // One that was refused is no longer ours, and says so on its way out.
    next.on('error', (error) => next === socket && over(`${address.where}: ${troubleOf(error)}`));
    next.on('close', (code) => next === socket && over(`it closed the connection (${code})`));
    next.on('unexpected-response', (_, response) => refused(next, response, isSecond));
  }

  function refused(tried: WebSocket, response: IncomingMessage, isSecond: boolean): void {
    const { statusCode: status = 0, headers } = response;
    socket = undefined;
    tried.terminate();
    if (!isChallenge(status, headers)) return over(`it answered HTTP ${status} instead of opening a WebSocket`);
    const unauthorized = (): void => events.onUnauthorized(`it answered HTTP ${status}`);
    if (isSecond) return unauthorized();
    authorizer.challenged({ status, headers }).then(
      (isMended) => (isMended ? begin(true) : unauthorized()),
      (error) => over(sentence(error)),
    );
  }

  function opened(): void {
    for (const frame of waiting.splice(0)) write(frame);
    if (settings.pingMs > 0) beat = setInterval(check, settings.pingMs);
    beat?.unref();
    events.onRoom();
  }

  function check(): void {
    if (!isAlive) return over(`it did not answer a ping within ${settings.pingMs} ms`);
    isAlive = false;
    socket?.ping();
  }

  function begin(isSecond: boolean): void {
    connect(isSecond).catch((error) => over(sentence(error)));
  }

  function over(why: string): void {
    if (isOver) return;
    isOver = true;
    clearInterval(beat);
    events.onClosed(why, false);
  }

  const isOpen = (): boolean => socket?.readyState === WebSocket.OPEN;
  const hasRoom = (): boolean => isOpen() && (socket?.bufferedAmount ?? 0) < MAX_UNREAD_BYTES;

  function write(frame: Buffer): void {
    if (!isOpen()) return void waiting.push(frame);
    socket?.send(frame.subarray(0, -1), { binary: false }, () => {
      if (!wasFull || !hasRoom()) return;
      wasFull = false;
      events.onRoom();
    });
    wasFull ||= !hasRoom();
  }

  begin(false);

  return {
    request: write,
    notify: write,
    reply(frame) {
      if (!hasRoom()) return false;
      write(frame);
      return true;
    },
    drop: () => isOpen(),
    negotiated: () => {},
    hasRoom,
    pause: () => isOpen() && socket?.pause(),
    resume: () => isOpen() && socket?.resume(),
    close: () => (isOpen() ? socket?.close(1000) : setImmediate(over, 'it was closed')),
    kill() {
      isOver = true;
      clearInterval(beat);
      waiting = [];
      socket?.terminate();
    },
  };
}

const TOO_LONG = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

/** Of an error only the code: its text may hold the address with its query. */
function troubleOf(error: Error): string {
  const code = 'code' in error ? String(error.code) : '';
  if (code === TOO_LONG) return 'it sent a frame of more than x-troupe.maxFrameBytes';
  if (code) return `the connection failed (${code})`;
  return /subprotocol/i.test(error.message) ? 'it does not speak the subprotocol mcp' : 'the connection failed';
}
