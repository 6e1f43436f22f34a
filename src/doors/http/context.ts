// What all requests of the HTTP door share: its settings and sessions, the answers that it owes, and who reads which stream.

import type { Logger } from 'pino';
import type { Deadlines, Due } from '../../calls/deadlines.ts';
import type { HttpSettings } from '../../config/schema.ts';
import type { Mirror } from '../../servers/remote/mirrored.ts';
import type { HostSession, Sessions } from '../../sessions/host.ts';
import type { World } from '../../world/world.ts';

export type HttpContext = {
  readonly world: World;
  readonly sessions: Sessions;
  readonly settings: HttpSettings;
  readonly timing: Timing;
  readonly logger: Logger;
  /** Takes faults of ours, of which hosts are not told more than that there was one. */
  readonly onFault: (error: unknown) => void;
  readonly readers: Readers;
  /** The exchanges that are not answered yet and may still be plain JSON. */
  readonly patience: Deadlines<Due>;
  /** The answers that hosts wait for. */
  readonly owed: Tally;
  /** The bytes of requests that have not arrived whole yet. */
  readonly arriving: { bytes: number; readonly most: number };
  readonly headerDeclarations: HeaderDeclarations | undefined;
};

export type Timing = {
  /** How long a request waits for its answer before it becomes a stream. */
  readonly patienceMs: number;
  /** How long a host may take to come back to the stream of a request before nobody is taken to wait for the answer. */
  readonly returnMs: number;
  /** How long a stream stays on one connection, for hosts that know how to come back. */
  readonly rotateMs: number;
  /** How long a request's head, and then its body, may take to arrive. */
  readonly headMs: number;
  readonly bodyMs: number;
  /** How often the two are looked after. */
  readonly checkMs: number;
  /** How long requests in flight are waited for when the door closes. */
  readonly drainMs: number;
};

/** What the `x-mcp-header` of a tool say. */
export type HeaderDeclarations = (session: HostSession, tool: string) => readonly Mirror[];

// ── How many there are of something, and when there are none ─────────────────

export type Tally = { add(): void; remove(): void; whenNone(): Promise<void> };

export function createTally(): Tally {
  let count = 0;
  let onNone = (): void => {};
  return {
    add() {
      count += 1;
    },
    remove() {
      count -= 1;
      if (count === 0) onNone();
    },
    whenNone: () =>
      new Promise((resolve) => {
        if (count === 0) resolve();
        else onNone = resolve;
      }),
  };
}

// ── Who reads which stream ───────────────────────────────────────────────────

export type Reader = {
  readonly session: string;
  readonly stream: string;
  /** Of the session's standing stream: it waits for no answer. */
  readonly isStanding: boolean;
  /** Ends the response, not the stream. */
  retire(): void;
};
export type Readers = ReturnType<typeof createReaders>;
/** A stream that shall be read, and the end of the wait for somebody who does. */
type Awaited = { readonly onReader: (where: 'back' | 'gone') => void; stop: () => void };

/**
 * A stream has one reader: a later one takes over, because it is nearly always the same host, back before we noticed that its
 * old connection is dead. A session has only so many.
 */
export function createReaders(maxPerSession: number, { world, returnMs }: { world: World; returnMs: number }) {
  const byStream = new Map<string, Reader>();
  const bySession = new Map<string, Set<Reader>>();
  const awaited = new Map<string, Awaited>();

  function leave(reader: Reader): void {
    if (byStream.get(reader.stream) === reader) {
      byStream.delete(reader.stream);
      awaitReturn(reader.stream);
    }
    const others = bySession.get(reader.session);
    others?.delete(reader);
    if (others?.size === 0) bySession.delete(reader.session);
  }

  function awaitReturn(stream: string): void {
    const waiting = awaited.get(stream);
    waiting?.stop();
    if (waiting) waiting.stop = world.after(returnMs, () => waiting.onReader('gone'));
  }

  return {
    isRead: (stream: string): boolean => byStream.has(stream),
    /** Tells when a reader of the stream has come back, and when none has for too long. Returns how to hear no more of it. */
    watch(stream: string, onReader: Awaited['onReader']): () => void {
      const waiting: Awaited = { onReader, stop: () => {} };
      awaited.set(stream, waiting);
      if (!byStream.has(stream)) awaitReturn(stream);
      return () => {
        waiting.stop();
        awaited.delete(stream);
      };
    },
    /** Whether the session may have no further stream; one that is taken over is no further one. */
    isFull: (session: string, stream?: string): boolean =>
      (bySession.get(session)?.size ?? 0) >= maxPerSession && !(stream !== undefined && byStream.has(stream)),
    enter(reader: Reader): () => void {
      const before = byStream.get(reader.stream);
      if (before) {
        leave(before);
        before.retire();
      }
      byStream.set(reader.stream, reader);
      const waiting = awaited.get(reader.stream);
      waiting?.stop();
      waiting?.onReader('back');
      const others = bySession.get(reader.session) ?? new Set();
      bySession.set(reader.session, others.add(reader));
      return () => leave(reader);
    },
    retireStanding(): void {
      for (const reader of [...byStream.values()]) if (reader.isStanding) reader.retire();
    },
    retireAll(): void {
      for (const reader of [...byStream.values()]) reader.retire();
    },
  };
}
