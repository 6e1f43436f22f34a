// Streams that a host may leave and come back to. Every event is on the disk before anybody sees it; its number is the
// disk's own, so that it is higher than every earlier one whichever daemon wrote it.

import { createHash, randomBytes } from 'node:crypto';
import { TroupeError } from '../protocol/failures.ts';
import type { Store, StreamRow } from '../store/store.ts';
import type { Stream, Streams } from './host.ts';
import { createReaders, eventId } from './readers.ts';

export type StreamsOptions = {
  readonly store: Store;
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  /** How many requests of one session may be streaming at once. */
  readonly maxStreams: number;
  readonly onTrouble: (error: unknown) => void;
};

export type LocalStreams = Streams & {
  /** A message that belongs to no request of that session. */
  tell(session: string, frame: Buffer): void;
  /** Whether somebody reads, or has read, the session's standing stream. */
  isRead(session: string): boolean;
  /** From here on a reader that says nothing of where it was gets what comes next. */
  skip(session: string): void;
  forget(session: string): void;
  close(): void;
};

/** What one session's standing stream keeps: nobody's silence may push out what others come back for. */
const STANDING_EVENTS = 1_000;

export function createStreams(options: StreamsOptions): LocalStreams {
  const { store, daemon, maxStreams, onTrouble } = options;
  const open = new Map<string, number>();
  /** How far the standing stream of each session was read, and how much it was told. */
  const standings = new Map<string, { readTo: number; told: number }>();
  const readers = createReaders({
    ...options,
    onRead(stream, seq) {
      const standing = standings.get(stream);
      if (standing) standing.readTo = seq;
    },
  });

  function append(stream: string, message: Buffer, isLast: boolean): void {
    const frame = withoutNewline(message);
    store.commit('addEvent', [stream, frame, isLast ? 1 : 0, Date.now()]).then(
      () => readers.wake(stream),
      (error) => {
        onTrouble(error);
        readers.handOver(stream, frame, isLast);
      },
    );
  }

  function count(session: string, change: 1 | -1): void {
    const next = (open.get(session) ?? 0) + change;
    if (next > maxStreams)
      throw new TroupeError('busy', `the session already has ${maxStreams} open streams; wait for one to end`);
    if (next > 0) open.set(session, next);
    else open.delete(session);
  }

  return {
    async open(session, requestId): Promise<Stream> {
      count(session, 1);
      const id = randomBytes(12).toString('base64url');
      try {
        await store.commit('addStream', [id, session, requestId, daemon, Date.now()]);
      } catch (error) {
        count(session, -1);
        throw error;
      }
      const add: Stream['append'] = (frame, isLast) => {
        append(id, frame, isLast);
        if (isLast) count(session, -1);
      };
      return { id, primer: eventId(id, 0), append: add };
    },
    standing(session) {
      const stream = standingOf(session);
      return { stream, after: standings.get(stream)?.readTo ?? 0 };
    },
    skip(session) {
      const stream = standingOf(session);
      const readTo = store.get<{ seq: number | null }>('newestEventOf', [stream])?.seq ?? 0;
      standings.set(stream, { readTo, told: 0 });
    },
    forget: (session) => void standings.delete(standingOf(session)),
    isRead: (session) => readers.isRead(standingOf(session)) || (standings.get(standingOf(session))?.readTo ?? 0) > 0,
    tell(session, frame) {
      const stream = standingOf(session);
      append(stream, frame, false);
      const standing = standings.get(stream);
      if (standing && ++standing.told % STANDING_EVENTS === 0)
        store.write('trimStream', [stream, stream, STANDING_EVENTS]);
    },
    locate: (session, id) => {
      const [, stream = '', after = ''] = /^([\w-]{16})\.(\d{1,15})$/.exec(id) ?? [];
      const isTheirs = stream === standingOf(session) || store.get<StreamRow>('stream', [stream])?.session === session;
      return isTheirs ? { stream, after: Number(after) } : undefined;
    },
    follow: readers.follow,
    close: readers.close,
  };
}

/** The standing stream needs no row of its own: whoever knows the session knows its name. */
const standingOf = (session: string): string => createHash('sha256').update(session).digest('base64url').slice(0, 16);

const NEWLINE = 0x0a;
const withoutNewline = (frame: Buffer): Buffer => (frame.at(-1) === NEWLINE ? frame.subarray(0, -1) : frame);
