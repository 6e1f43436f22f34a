// The NATS client joins all that it is about to send into one new buffer. For a megabyte that is a copy of it, and memory
// that only a garbage collection gives back; so what is large goes to the socket as it is, between its head and its end.

import type { Socket } from 'node:net';

/** More than the client lets wait before it sends, so that few small messages leave on their own. */
export const LARGE_BYTES = 64 * 1024;

/** What of the client's insides is used: `outbound` is what it has not yet given to the socket. */
export type Sending = {
  readonly connected: boolean;
  readonly outbound: { length(): number; shift(): Uint8Array };
  readonly transport: { readonly socket?: Socket; send(bytes: Uint8Array): void };
  flushPending(): void;
};

/** Publishes without a copy: whoever publishes something large does not change its bytes afterwards. */
export function sendLarge(sending: Sending, publish: () => void): void {
  if (!sending.connected) return publish(); // it waits for the connection, with all else
  sending.flushPending(); // what was published before it leaves before it
  publish();
  const { outbound, transport } = sending;
  transport.socket?.cork();
  while (outbound.length() > 0) transport.send(outbound.shift());
  transport.socket?.uncork();
}
