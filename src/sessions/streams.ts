// Streams that a host may leave and come back to. Every event is on the disk before any reader sees it, and readers read from
// the disk, so that none misses an event or sees one twice. The number of an event is the disk's own: it is higher than every
// earlier one, whichever daemon wrote it. Events hold what servers answered, so they are sealed.

import { createHash } from 'node:crypto';
import { FAILURES, TroupeError } from '../protocol/failures.ts';
import type { Seal } from '../store/seal.ts';
import type { EventRow, Store, StreamRow } from '../store/store.ts';
import type { World } from '../world/world.ts';
import type { Stream, StreamEvent, Streams } from './host.ts';

export type StreamsOptions = {
  readonly world: World;
  readonly store: Store;
  readonly seal: Seal;
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
  /** Whether the session's standing stream has, or had, a reader. */
  isRead(session: string): boolean;
  /** From here on a reader that does not say where it was begins with the next event. */
  skip(session: string): void;
  forget(session: string): void;
  close(): void;
};

/** How many events one session's standing stream keeps, so that it cannot push out the streams of others. */
const STANDING_EVENTS = 1_000;

export function createStreams(options: StreamsOptions): LocalStreams {
  const { world, store, seal, daemon, maxStreams, onTrouble } = options;
  /** How many requests of each session are streaming. */
  const open = new Map<string, number>();
  /** How far the standing stream of each session was read, and how much it was told. */
  const standings = new Map<string, { readTo: number; told: number }>();
  const readers = createReaders(options, (stream, seq) => {
    const standing = standings.get(stream);
    if (standing) standing.readTo = seq;
  });

  function append(stream: string, message: Buffer, isLast: boolean): Promise<void> {
    const frame = withoutNewline(message);
    const written = async () =>
      store.commit('addEvent', [stream, seal.seal(frame, nameOf(stream)), isLast ? 1 : 0, world.date()]);
    return written().then(
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
      const id = world.random(12).toString('base64url');
      try {
        await store.commit('addStream', [id, session, requestId, daemon, world.date()]);
      } catch (error) {
        count(session, -1);
        throw error;
      }
      const add: Stream['append'] = (frame, isLast) => {
        const written = append(id, frame, isLast);
        if (isLast) count(session, -1);
        return written;
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
      void append(stream, frame, false);
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

/** The standing stream needs no row of its own: its name follows from the session's. */
const standingOf = (session: string): string => createHash('sha256').update(session).digest('base64url').slice(0, 16);

const eventId = (stream: string, seq: number): string => `${stream}.${seq}`;

/** What an event is sealed for: it cannot be read as one of another stream. */
const nameOf = (stream: string): string => `event of ${stream}`;

/** An earlier version wrote events in clear, and SQLite writes the last one of a stream whose daemon has died. */
const opened = (seal: Seal, stream: string, frame: Buffer): Buffer | undefined =>
  isJson(frame) ? frame : seal.openBytes(frame, nameOf(stream));

const [OBJECT, ARRAY] = [0x7b, 0x5b];
const isJson = (frame: Buffer): boolean => frame[0] === OBJECT || frame[0] === ARRAY;

const NEWLINE = 0x0a;
const withoutNewline = (frame: Buffer): Buffer => (frame.at(-1) === NEWLINE ? frame.subarray(0, -1) : frame);

// ── Reading ──────────────────────────────────────────────────────────────────

type Reader = {
  after: number;
  isReading: boolean;
  readonly onEvent: (event: StreamEvent) => unknown;
  readonly onEnd: () => void;
};

/** How soon a reader sees the events that another daemon wrote, and that the daemon has died. */
const LOOK_MS = 100;
const DEAD_MS = 2_000;

/** Our own commits wake the readers here; a small query from time to time finds what another daemon wrote. */
function createReaders(options: StreamsOptions, onRead: (stream: string, seq: number) => void) {
  const { store, seal, isAlive, onTrouble } = options;
  const readers = new Map<string, Set<Reader>>();
  const watch = watchOthers(options, { streams: () => readers.keys(), wake });

  function wake(stream: string): void {
    for (const reader of readers.get(stream) ?? []) attempt(() => read(stream, reader), onTrouble);
  }

  function read(stream: string, reader: Reader): void {
    if (reader.isReading) return; // the reading under way will come to this event too
    reader.isReading = true;
    let rows: EventRow[] = [];
    do {
      rows = store.all<EventRow>('eventsAfter', [stream, reader.after]);
      for (const { seq, frame, is_last } of rows) {
        if (!readers.get(stream)?.has(reader)) return;
        const event = opened(seal, stream, frame);
        if (!event) onTrouble(new Error(`event ${seq} of a stream cannot be read with the key of this directory`));
        else if (reader.onEvent({ id: eventId(stream, seq), frame: event }) === false) return leave(stream, reader);
        reader.after = seq;
        onRead(stream, seq);
        if (is_last) return finish(stream, reader);
      }
    } while (rows.length > 0);
    reader.isReading = false;
  }

  function finish(stream: string, reader: Reader): void {
    leave(stream, reader);
    reader.onEnd();
  }

  function leave(stream: string, reader: Reader): void {
    const all = readers.get(stream);
    all?.delete(reader);
    if (all?.size === 0) readers.delete(stream);
    if (readers.size === 0) watch.stop();
  }

  const follow: Streams['follow'] = ({ stream, after }, onEvent, onEnd) => {
    const reader: Reader = { after, isReading: false, onEvent, onEnd };
    readers.set(stream, (readers.get(stream) ?? new Set()).add(reader));
    watch.start();
    const owner = watch.foreignOwner(stream);
    if (owner !== undefined && !isAlive(owner)) watch.interrupt(owner);
    // Asked before reading: the last event may come in between, and is read then.
    const wasOver = store.get<StreamRow>('stream', [stream])?.is_over === 1;
    read(stream, reader);
    if (wasOver && readers.get(stream)?.has(reader)) finish(stream, reader);
    return () => leave(stream, reader);
  };

  return {
    follow,
    wake,
    isRead: (stream: string): boolean => readers.has(stream),
    /** An event that the disk refused goes to the readers of this moment; they cannot come back to it. */
    handOver(stream: string, frame: Buffer, isLast: boolean): void {
      for (const reader of readers.get(stream) ?? []) {
        reader.onEvent({ id: '', frame });
        if (isLast) finish(stream, reader);
      }
    },
    close(): void {
      watch.stop();
      readers.clear();
    },
  };
}

// ── Streams of other daemons ─────────────────────────────────────────────────

const INTERRUPTED = JSON.stringify({
  code: FAILURES.lost.rpc,
  message: 'troupe was interrupted; the request was sent and its outcome is unknown',
  data: { troupe: { code: 'lost', delivery: 'outcome unknown' } },
});

type Watched = {
  /** The streams that are being read. */
  readonly streams: () => Iterable<string>;
  readonly wake: (stream: string) => void;
};

function watchOthers({ world, store, daemon, isAlive, onTrouble }: StreamsOptions, { streams, wake }: Watched) {
  let stops: (() => void)[] = [];
  let seen = newest();
  interrupt(daemon); // the streams that an earlier life of ours began would never end

  function newest(): number {
    return store.get<{ seq: number | null }>('newestEvent')?.seq ?? 0;
  }

  /** Ends only what that daemon had begun before: its next life may already have streams of its own. */
  function interrupt(name: string): void {
    const now = world.date();
    store.commit('interruptStreams', [INTERRUPTED, now, name, now]).then(look, onTrouble);
  }

  function look(): void {
    if (stops.length === 0) return;
    attempt(() => {
      const upTo = newest();
      if (upTo === seen) return;
      for (const { stream } of store.all<{ stream: string }>('streamsSince', [seen])) wake(stream);
      seen = upTo;
    }, onTrouble);
  }

  function lookForDead(): void {
    const dead = new Set<string>();
    attempt(() => {
      for (const stream of streams()) {
        const owner = foreignOwner(stream);
        if (owner !== undefined && !dead.has(owner) && !isAlive(owner)) dead.add(owner);
      }
    }, onTrouble);
    for (const owner of dead) interrupt(owner);
  }

  /** The other daemon that is to end this stream, if one is. */
  function foreignOwner(stream: string): string | undefined {
    const row = store.get<StreamRow>('stream', [stream]);
    return row && row.is_over === 0 && row.daemon !== daemon ? row.daemon : undefined;
  }

  return {
    interrupt,
    foreignOwner,
    start(): void {
      if (stops.length === 0) stops = [world.every(LOOK_MS, look), world.every(DEAD_MS, lookForDead)];
    },
    stop(): void {
      for (const stop of stops) stop();
      stops = [];
    },
  };
}

/** Trouble with the disk is told; it must not end the daemon from within a timer. */
function attempt(work: () => void, onTrouble: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    onTrouble(error);
  }
}
