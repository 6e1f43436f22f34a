// Server-sent events on one response: how they are written, and that a connection with nothing to say is kept alive.

import type { World } from '../../world/world.ts';
import { leavesTooMuch } from '../unread.ts';
import { type HttpRequest, isGone, onGone } from './request.ts';

export type EventOptions = {
  readonly world: World;
  readonly keepAliveMs: number;
  /** Called at every sign of life that is due. */
  readonly onTick?: () => void;
};

/** How long a host should wait before it comes back to a stream that we closed. */
export const RETRY_MS = 500;
/** How many bytes may wait in memory for a reader of events that are not on the disk. */
const MOST_UNREAD = 16 * 1024 * 1024;

/** The head of the response, and a comment from time to time until it is closed. */
export function startEvents(http: HttpRequest, headers: readonly string[], options: EventOptions): void {
  const { res, cors } = http;
  res.writeHead(200, [
    'Content-Type',
    'text/event-stream',
    'Cache-Control',
    'no-cache, no-transform',
    'X-Accel-Buffering',
    'no',
    ...headers,
    ...cors,
  ]);
  res.flushHeaders();
  let wasStuck = false;
  const tick = (): void => {
    // A reader that has read nothing between two ticks is as good as gone; it can come back.
    if (wasStuck && res.writableNeedDrain) return void res.destroy();
    wasStuck = res.writableNeedDrain;
    if (!wasStuck) res.write(': still here\n\n');
    options.onTick?.();
  };
  if (options.keepAliveMs > 0) onGone(http, options.world.every(options.keepAliveMs, tick));
}

/** The frame is one line; a newline at its end is not part of the message. No reader can come back to an event without id. */
export function writeEvent({ res }: HttpRequest, frame: Buffer, id: string): void {
  const head = id === '' ? 'event: message\ndata: ' : `event: message\nid: ${id}\ndata: `;
  const size = frame.at(-1) === NEWLINE ? frame.length - 1 : frame.length;
  const bytes = Buffer.allocUnsafe(head.length + size + 2);
  bytes.write(head, 'latin1');
  frame.copy(bytes, head.length, 0, size);
  bytes[head.length + size] = NEWLINE;
  bytes[head.length + size + 1] = NEWLINE;
  res.write(bytes);
}

const NEWLINE = 0x0a;

/** An event that is on no disk: a reader that does not keep up is let go. */
export function writeLive(http: HttpRequest, frame: Buffer): void {
  if (isGone(http) || http.res.writableEnded) return;
  writeEvent(http, frame, '');
  if (leavesTooMuch(http.res, MOST_UNREAD)) http.res.destroy();
}

/** Says where the stream begins, so that even a reader that heard nothing can come back. */
export function writePrimer({ res }: HttpRequest, id: string): void {
  res.write(`id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`);
}

/** Ends the response but not the stream: the host is to come back for the rest. */
export function endForNow({ res }: HttpRequest): void {
  if (!res.writableEnded) res.end(`retry: ${RETRY_MS}\n\n`);
}
