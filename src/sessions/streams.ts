// Streams that a host may leave and come back to. Every event is on the disk before anybody sees it, and readers read it
// from there: so a reader misses nothing and sees nothing twice, whoever wrote it and whichever daemon it reads from.

import { createHash, randomBytes } from 'node:crypto';
import { FAILURES, TroupeError } from '../failures.ts';
import type { EventRow, Store, StreamRow } from '../store/store.ts';
import type { Place, Stream, StreamEvent, Streams } from './host.ts';

export type StreamsOptions = {
  readonly store: Store;
  /** This daemon's name among those on the state directory. */
  readonly daemon: string;
  /** Whether the daemon of that name runs; one that does not will never end its streams. */
  readonly isAlive: (daemon: string) => boolean;
  /** How many requests of one session may be streaming at once. */
  readonly maxStreams: number;
  readonly onTrouble: (error: unknown) => void;
};

export type LocalStreams = Streams & {
  /** A message that belongs to no request of that session. */
  tell(session: string, frame: Buffer): void;
  /** Whether somebody has opened the session's standing stream. */
  isRead(session: string): boolean;
  /** From here on a reader that says nothing of where it was gets what comes next. */
  skip(session: string): void;
  forget(session: string): void;
  close(): void;
};

type Reader = { after: number; isReading: boolean; onEvent: (event: StreamEvent) => unknown; onEnd: () => void };

/** How soon a reader sees what another daemon wrote. */
const LOOK_MS = 100;
const INTERRUPTED = JSON.stringify({
  code: FAILURES.lost.rpc,
  message: 'troupe was interrupted; the request was sent and its outcome is unknown',
  data: { troupe: { code: 'lost', delivery: 'outcome unknown' } },
});

export function createStreams({ store, daemon, isAlive, maxStreams, onTrouble }: StreamsOptions): LocalStreams {
  const readers = new Map<string, Set<Reader>>();
  const standings = new Map<string, number>();
  const open = new Map<string, number>();
  let seen = newest();
  let timer: NodeJS.Timeout | undefined;
  interrupt(daemon); // what an earlier life of ours began, nobody will end

  function newest(): number {
    return store.get<{ seq: number | null }>('newestEvent')?.seq ?? 0;
  }

  function interrupt(name: string): void {
    store.commit('interruptStreams', [INTERRUPTED, Date.now(), name]).then(look, onTrouble);
  }

  /** One question for all readers: which streams have news that we did not write ourselves. */
  function look(): void {
    if (readers.size === 0 || newest() === seen) return;
    for (const { stream } of store.all<{ stream: string }>('streamsSince', [seen])) wake(stream);
    seen = newest();
  }

  function wake(stream: string): void {
    for (const reader of readers.get(stream) ?? []) read(stream, reader);
  }

  function read(stream: string, reader: Reader): void {
    if (reader.isReading) return; // what it is doing will see this too
    reader.isReading = true;
    let rows: EventRow[] = [];
    do {
      rows = store.all<EventRow>('eventsAfter', [stream, reader.after]);
      for (const { seq, frame, is_last } of rows) {
        if (!readers.get(stream)?.has(reader)) return;
        if (reader.onEvent({ id: idOf(stream, seq), frame }) === false) return leave(stream, reader);
        reader.after = seq;
        if (standings.has(stream)) standings.set(stream, seq);
        if (is_last) return finish(stream, reader);
      }
    } while (rows.length > 0);
    reader.isReading = false;
  }

  /** A reader that comes after the last event would otherwise wait for one more. */
  function isOver(stream: string): boolean {
    return store.get<StreamRow>('stream', [stream])?.is_over === 1;
  }

  function finish(stream: string, reader: Reader): void {
    leave(stream, reader);
    reader.onEnd();
  }

  function leave(stream: string, reader: Reader): void {
    const all = readers.get(stream);
    all?.delete(reader);
    if (all?.size === 0) readers.delete(stream);
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function append(stream: string, message: Buffer, isLast: boolean): void {
    const frame = withoutNewline(message);
    store.commit('addEvent', [stream, frame, isLast ? 1 : 0, Date.now()]).then(
      () => wake(stream),
      (error) => {
        onTrouble(error);
        for (const reader of readers.get(stream) ?? []) handOver(stream, reader, frame, isLast);
      },
    );
  }

  /** What the disk refuses can still be said to those who are here; they cannot come back to it. */
  function handOver(stream: string, reader: Reader, frame: Buffer, isLast: boolean): void {
    reader.onEvent({ id: '', frame });
    if (isLast) finish(stream, reader);
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
      return { id, primer: idOf(id, 0), append: add };
    },
    standing(session) {
      const stream = standingOf(session);
      return { stream, after: standings.get(stream) ?? 0 };
    },
    forget: (session) => void standings.delete(standingOf(session)),
    skip(session) {
      const stream = standingOf(session);
      standings.set(stream, store.get<{ seq: number | null }>('newestEventOf', [stream])?.seq ?? 0);
    },
    isRead: (session) => readers.has(standingOf(session)) || (standings.get(standingOf(session)) ?? 0) > 0,
    tell: (session, frame) => append(standingOf(session), frame, false),
    locate: (session, eventId) => {
      const [, stream = '', after = ''] = /^([\w-]{16})\.(\d{1,15})$/.exec(eventId) ?? [];
      const isTheirs = stream === standingOf(session) || store.get<StreamRow>('stream', [stream])?.session === session;
      return isTheirs ? { stream, after: Number(after) } : undefined;
    },
    follow({ stream, after }: Place, onEvent, onEnd) {
      const reader: Reader = { after, isReading: false, onEvent, onEnd };
      const all = readers.get(stream) ?? new Set();
      readers.set(stream, all.add(reader));
      timer ??= setInterval(look, LOOK_MS).unref();
      abandoned(stream);
      read(stream, reader);
      if (readers.get(stream)?.has(reader) && isOver(stream)) finish(stream, reader);
      return () => leave(stream, reader);
    },
    close() {
      clearInterval(timer);
      readers.clear();
    },
  };

  /** A stream of a daemon that is gone for good is ended by whoever is asked for it. */
  function abandoned(stream: string): void {
    const row = store.get<StreamRow>('stream', [stream]);
    if (row && row.is_over === 0 && row.daemon !== daemon && !isAlive(row.daemon)) interrupt(row.daemon);
  }
}

/** The standing stream needs no row of its own: whoever knows the session knows its name. */
const standingOf = (session: string): string => createHash('sha256').update(session).digest('base64url').slice(0, 16);

const idOf = (stream: string, seq: number): string => `${stream}.${seq}`;

const NEWLINE = 0x0a;
const withoutNewline = (frame: Buffer): Buffer => (frame.at(-1) === NEWLINE ? frame.subarray(0, -1) : frame);
