// The roots of a session's host. The host is asked for them once it is ready, and again when it says that they have changed:
// over its connection, or, where it has none, on the line of its next request. Its answer is kept with the session; a host that
// does not answer keeps the roots it had. Calls wait a while for the answer, so that the first one finds the roots in place.

import type { Answer } from '../calls/call.ts';
import { askFrame, notificationFrame } from '../protocol/compose.ts';
import { NAME } from '../protocol/version.ts';
import { type Offers, readOffers } from '../roots/offers.ts';
import type { World } from '../world/world.ts';
import { HEARS_ON, type Line } from './host.ts';
import type { Identity, SessionPorts } from './ports.ts';

export type HostRootsOptions = {
  readonly world: World;
  readonly roots: Pick<SessionPorts['roots'], 'host'>;
  readonly identity: Pick<Identity, 'id' | 'door' | 'capabilities'>;
  /** Undefined while the host has no connection of its own. */
  readonly connection: () => ((frame: Buffer) => void) | undefined;
  /** Tells the host what became of its roots, where it listens; false when it does not listen now. */
  readonly warn: (frame: Buffer) => boolean;
  readonly answerMs?: number;
  readonly patienceMs?: number;
  readonly paceMs?: number;
};
export type HostRoots = ReturnType<typeof createHostRoots>;

const EMPTY = Buffer.from('{}');
const MAX_WARNINGS = 5;

export function createHostRoots(options: HostRootsOptions) {
  const { world, roots, identity, connection, warn, answerMs = 10_000, patienceMs = 2_000, paceMs = 1_000 } = options;
  const { id: session, door, capabilities } = identity;
  const asksOnRequests = HEARS_ON[door] === 'stream';
  // Another daemon may ask the same host, and the answers come to either.
  const prefix = `"roots-${world.random(6).toString('base64url')}-`;
  let sequence = 0;
  let isDue = false;
  let askedAt = Number.NEGATIVE_INFINITY;
  /** The id of the question that is not answered yet. */
  let open: string | undefined;
  let stopWaiting = (): void => {};
  let stopPacing: (() => void) | undefined;
  /** For calls that came while the question is open. */
  let awaited: Awaited | undefined;
  /** Warnings for a host that does not listen: they go with its next request. */
  let untold: Buffer[] = [];

  const waitMs = (): number => askedAt + paceMs - world.now();

  /** A host may say as often as it likes that its roots have changed; it is asked at most once in `paceMs`. */
  function askSoon(): void {
    const send = connection();
    if (!isDue || !send || stopPacing) return;
    if (waitMs() <= 0) return ask(send, send);
    stopPacing = world.after(waitMs(), () => {
      stopPacing = undefined;
      askSoon();
    });
  }

  /** Only the newest question counts. */
  function ask(tell: (frame: Buffer) => void, withdraw?: (frame: Buffer) => void): void {
    const id = `${prefix}${++sequence}"`;
    isDue = false;
    open = id;
    askedAt = world.now();
    stopWaiting();
    stopWaiting = world.after(answerMs, () => {
      open = undefined;
      withdraw?.(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id}}`)));
    });
    awaited ??= awaiting(world, patienceMs, done);
    tell(askFrame(id, 'roots/list', EMPTY));
  }

  async function keep(offers: Offers): Promise<void> {
    const complaints = await roots.host(session, offers);
    const frames = complaints.slice(0, MAX_WARNINGS).map(warningFrame);
    untold = frames.filter((frame) => !warn(frame));
  }

  function done(): void {
    awaited?.end();
    awaited = undefined;
  }

  return {
    /** The host is ready, or says that its roots have changed, or its session was brought back from the disk. */
    due(): void {
      if (!capabilities.roots) return;
      isDue = true;
      askSoon();
    },
    attached: askSoon,
    /** Called with every request, so it mostly does nothing. A question on a line is not withdrawn: the line may be gone. */
    requested(line: Line): void {
      if (untold.length > 0) for (const frame of untold.splice(0)) line.tell(frame);
      if (isDue && asksOnRequests && waitMs() <= 0) ask((frame) => line.tell(frame));
    },
    /** Resolves when the host has answered, or has had its time to; undefined while it is not asked. */
    known: (): Promise<void> | undefined => awaited?.promise,
    /** False for an answer to nothing that was asked here. */
    answered(id: string, answer: Answer): boolean {
      if (id !== open) return id.startsWith(prefix);
      stopWaiting();
      open = undefined;
      const offers = answer.ok ? readOffers(answer.result) : undefined;
      if (offers) void keep(offers).then(done);
      else done();
      return true;
    },
    dispose(): void {
      stopWaiting();
      stopPacing?.();
      isDue = false;
      open = undefined;
      done();
    },
  };
}

type Awaited = ReturnType<typeof awaiting>;

/** A promise that is kept in any case: by `end`, which is called when the time is up. */
function awaiting(world: Pick<World, 'after'>, ms: number, onLate: () => void) {
  const stop = world.after(ms, onLate);
  let resolve = (): void => {};
  const promise = new Promise<void>((kept) => {
    resolve = kept;
  });
  const end = (): void => {
    stop();
    resolve();
  };
  return { promise, end };
}

const warningFrame = (data: string): Buffer =>
  notificationFrame('notifications/message', Buffer.from(JSON.stringify({ level: 'warning', logger: NAME, data })));
