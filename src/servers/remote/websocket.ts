// The link to a server over WebSocket, subprotocol `mcp`: each text frame is one message. The transport is ours and the
// SDK's, not the specification's. A peer that does not answer pings is gone, though its connection may look open.

import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence } from '../../protocol/failures.ts';
import type { Link, LinkEvents } from '../connection/link.ts';
import type { Address } from './address.ts';
import { type Authorizer, isChallenge } from './authorizer.ts';

export type WebSocketOptions = {
  readonly address: Address;
  readonly config: RemoteServer;
  readonly headers: Record<string, string>;
  readonly authorizer: Authorizer;
  readonly events: LinkEvents;
};

const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export class WebSocketLink implements Link {
  readonly #options: WebSocketOptions;
  /** The socket that is open, or being opened. */
  #socket: WebSocket | undefined;
  #waiting: Buffer[] = [];
  #wasFull = false;
  #isOver = false;
  /** A message or a pong came since the last ping. */
  #isAlive = true;
  #beat: NodeJS.Timeout | undefined;

  constructor(options: WebSocketOptions) {
    this.#options = options;
    this.#begin(false);
  }

  // ── Opening ────────────────────────────────────────────────────────────────

  #begin(isSecond: boolean): void {
    this.#connect(isSecond).catch((error) => this.#over(sentence(error)));
  }

  async #connect(isSecond: boolean): Promise<void> {
    const { address, config, authorizer, events } = this.#options;
    const { settings } = config;
    const headers = { ...this.#options.headers, ...(await authorizer.headers()) };
    if (this.#isOver) return;
    const socket = new WebSocket(address.url, ['mcp'], {
      headers,
      maxPayload: settings.maxFrameBytes,
      handshakeTimeout: settings.openMs,
      perMessageDeflate: false,
      followRedirects: false,
    });
    this.#socket = socket;
    socket.on('open', () => this.#opened());
    socket.on('message', (data: Buffer) => {
      if (this.#isOver) return;
      this.#isAlive = true;
      events.onMessage(data);
      events.onChunk();
    });
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    // The socket of a refused handshake has been replaced, and its events mean nothing.
    const isCurrent = (): boolean => socket === this.#socket;
    socket.on('error', (error) => isCurrent() && this.#over(`${address.where}: ${troubleOf(error)}`));
    socket.on('close', (code) => isCurrent() && this.#over(`it closed the connection (${code})`));
    socket.on('unexpected-response', (_, response) => this.#refused(socket, response, isSecond));
  }

  #refused(tried: WebSocket, response: IncomingMessage, isSecond: boolean): void {
    const { authorizer, events } = this.#options;
    const { statusCode: status = 0, headers } = response;
    this.#socket = undefined;
    tried.terminate();
    if (!isChallenge(status, headers)) return this.#over(`it answered HTTP ${status} instead of opening a WebSocket`);
    const unauthorized = (): void => events.onUnauthorized(`it answered HTTP ${status}`);
    if (isSecond) return unauthorized();
    authorizer.challenged({ status, headers }).then(
      (isMended) => (isMended ? this.#begin(true) : unauthorized()),
      (error) => this.#over(sentence(error)),
    );
  }

  #opened(): void {
    const { pingMs } = this.#options.config.settings;
    for (const frame of this.#waiting.splice(0)) this.#write(frame);
    if (pingMs > 0) this.#beat = setInterval(() => this.#check(pingMs), pingMs);
    this.#beat?.unref();
    this.#options.events.onRoom();
  }

  #check(pingMs: number): void {
    if (!this.#isAlive) return this.#over(`it did not answer a ping within ${pingMs} ms`);
    this.#isAlive = false;
    this.#socket?.ping();
  }

  #over(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#beat);
    this.#options.events.onClosed(why, false);
  }

  // ── Messages ───────────────────────────────────────────────────────────────

  request(frame: Buffer): void {
    this.#write(frame);
  }

  notify(frame: Buffer): void {
    this.#write(frame);
  }

  reply(frame: Buffer): boolean {
    if (!this.hasRoom()) return false;
    this.#write(frame);
    return true;
  }

  #write(frame: Buffer): void {
    if (!this.#isOpen()) return void this.#waiting.push(frame);
    this.#socket?.send(frame.subarray(0, -1), { binary: false }, () => {
      if (!this.#wasFull || !this.hasRoom()) return;
      this.#wasFull = false;
      this.#options.events.onRoom();
    });
    this.#wasFull ||= !this.hasRoom();
  }

  #isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  hasRoom(): boolean {
    return this.#isOpen() && (this.#socket?.bufferedAmount ?? 0) < MAX_UNREAD_BYTES;
  }

  drop(): boolean {
    return this.#isOpen();
  }

  negotiated(): void {}

  // ── The end ────────────────────────────────────────────────────────────────

  pause(): void {
    if (this.#isOpen()) this.#socket?.pause();
  }

  resume(): void {
    if (this.#isOpen()) this.#socket?.resume();
  }

  close(): void {
    if (this.#isOpen()) this.#socket?.close(1000);
    else setImmediate(() => this.#over('it was closed'));
  }

  kill(): void {
    this.#isOver = true;
    clearInterval(this.#beat);
    this.#waiting = [];
    this.#socket?.terminate();
  }
}

const TOO_LONG = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

/** Only the code of an error is told: its text may hold the address with its query. */
function troubleOf(error: Error): string {
  const code = 'code' in error ? String(error.code) : '';
  if (code === TOO_LONG) return 'it sent a frame of more than x-troupe.maxFrameBytes';
  if (code) return `the connection failed (${code})`;
  return /subprotocol/i.test(error.message) ? 'it does not speak the subprotocol mcp' : 'the connection failed';
}
