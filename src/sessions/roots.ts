// The roots of a session's host. They are asked for once it is ready, and again when it says that they have changed: over its
// connection, or, where each request has a way back of its own, on that of the next request. What it answers is kept with
// the session; a host that does not answer keeps what it had.

import { randomBytes } from 'node:crypto';
import type { Answer } from '../calls/call.ts';
import { askFrame, notificationFrame } from '../protocol/compose.ts';
import { readOffers } from '../roots/offers.ts';
import type { Line } from './host.ts';
import type { Identity } from './session.ts';
import type { World } from './world.ts';

export type HostRootsOptions = {
  readonly roots: World['roots'];
  readonly identity: Pick<Identity, 'id' | 'door' | 'capabilities'>;
  /** Undefined while the host has no connection of its own. */
  readonly connection: () => ((frame: Buffer) => void) | undefined;
  readonly answerMs?: number;
  readonly paceMs?: number;
};
export type HostRoots = ReturnType<typeof createHostRoots>;

const EMPTY = Buffer.from('{}');

export function createHostRoots(options: HostRootsOptions) {
  const { roots, identity, connection, answerMs = 10_000, paceMs = 1_000 } = options;
  const { id: session, door, capabilities } = identity;
  // Another daemon may ask the same host, and the answers come to either.
  const prefix = `"roots-${randomBytes(6).toString('base64url')}-`;
  let sequence = 0;
  let isDue = false;
  let askedAt = Number.NEGATIVE_INFINITY;
  let open: string | undefined;
  let patience: NodeJS.Timeout | undefined;
  let pace: NodeJS.Timeout | undefined;

  const waitMs = (): number => askedAt + paceMs - performance.now();

  /** A host may say as often as it likes that its roots have changed. */
  function askSoon(): void {
    const send = connection();
    if (!isDue || !send || pace) return;
    if (waitMs() <= 0) return ask(send, send);
    pace = setTimeout(() => {
      pace = undefined;
      askSoon();
    }, waitMs()).unref();
  }

  /** Only the newest question counts. */
  function ask(tell: (frame: Buffer) => void, withdraw?: (frame: Buffer) => void): void {
    const id = `${prefix}${++sequence}"`;
    [isDue, open, askedAt] = [false, id, performance.now()];
    clearTimeout(patience);
    patience = setTimeout(() => {
      open = undefined;
      withdraw?.(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id}}`)));
    }, answerMs).unref();
    tell(askFrame(id, 'roots/list', EMPTY));
  }

  return {
    /** The host is ready, or says that its roots have changed, or was not known to this daemon. */
    due(): void {
      if (!capabilities.roots) return;
      isDue = true;
      askSoon();
    },
    attached: askSoon,
    /** Once for every request, so most of the time it is nothing. The line may be gone when the answer is late. */
    requested(line: Line): void {
      if (isDue && door === 'http' && waitMs() <= 0) ask((frame) => line.tell(frame));
    },
    /** False for an answer to nothing that was asked here. */
    answered(id: string, answer: Answer): boolean {
      if (id !== open) return id.startsWith(prefix);
      clearTimeout(patience);
      open = undefined;
      const offers = answer.ok ? readOffers(answer.result) : undefined;
      if (offers) void roots.host(session, offers);
      return true;
    },
    dispose(): void {
      clearTimeout(patience);
      clearTimeout(pace);
      [isDue, open] = [false, undefined];
    },
  };
}
