// Server-sent events on one response: how they are written, and that a connection with nothing to say is kept alive.

import { isGone, onGone, type Visit } from './visit.ts';

export type EventOptions = {
  readonly keepAliveMs: number;
  /** Called at every sign of life that is due. */
  readonly onTick?: () => void;
};

/** How long a host should wait before it comes back to a stream that we closed. */
export const RETRY_MS = 500;
/** What may wait in memory for a reader that nobody can send to the disk. */
const MOST_UNREAD = 16 * 1024 * 1024;

/** The head of the response, and a comment from time to time until it is closed. */
export function startEvents(visit: Visit, headers: readonly string[], options: EventOptions): void {
  const { res, cors } = visit;
  res.writeHead(200, [
    ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-cache, no-transform', 'X-Accel-Buffering', 'no'],
    ...headers,
    ...cors,
  ]);
  res.flushHeaders();
  let wasStuck = false;
  const tick = (): void => {
    // One that has read nothing between two ticks is gone, or as good as; it can come back.
    if (wasStuck && res.writableNeedDrain) return void res.destroy();
    wasStuck = res.writableNeedDrain;
    if (!wasStuck) res.write(': still here\n\n');
    options.onTick?.();
  };
  const timer = options.keepAliveMs > 0 ? setInterval(tick, options.keepAliveMs) : undefined;
  onGone(visit, () => clearInterval(timer));
}

/** The frame is one line; a newline at its end is not part of the message. An event without id cannot be come back to. */
export function writeEvent({ res }: Visit, frame: Buffer, id: string): void {
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

/** An event that is on no disk, for a reader that must keep up or be let go. */
export function writeLive(visit: Visit, frame: Buffer): void {
  if (isGone(visit) || visit.res.writableEnded) return;
  writeEvent(visit, frame, '');
  if (visit.res.writableLength > MOST_UNREAD) visit.res.destroy();
}

/** Says where the stream begins, so that even a reader that heard nothing can come back. */
export function writePrimer({ res }: Visit, id: string): void {
  res.write(`id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`);
}

/** Ends the response but not the stream: the host is to come back for the rest. */
export function endForNow({ res }: Visit): void {
  if (!res.writableEnded) res.end(`retry: ${RETRY_MS}\n\n`);
}
