// Those who read streams now. They read from the disk, so that a reader misses nothing and sees nothing twice, whoever wrote
// it: our own commits wake them, and one small question from time to time finds what another daemon wrote, or that it died.

import { FAILURES } from '../protocol/failures.ts';
import type { EventRow, Store, StreamRow } from '../store/store.ts';
import type { Place, StreamEvent, Streams } from './host.ts';

export type ReadersOptions = {
  readonly store: Store;
  /** This daemon's name among those on the state directory. */
  readonly daemon: string;
  /** Whether the daemon of that name runs; one that does not will never end its streams. */
  readonly isAlive: (daemon: string) => boolean;
  /** How far a stream has been handed over. */
  readonly onRead: (stream: string, seq: number) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type Readers = ReturnType<typeof createReaders>;

type Reader = { after: number; isReading: boolean; onEvent: (event: StreamEvent) => unknown; onEnd: () => void };

/** How soon a reader sees what another daemon wrote, and that it is no more. */
const LOOK_MS = 100;
const DEAD_MS = 2_000;
const INTERRUPTED = JSON.stringify({
  code: FAILURES.lost.rpc,
  message: 'troupe was interrupted; the request was sent and its outcome is unknown',
  data: { troupe: { code: 'lost', delivery: 'outcome unknown' } },
});

export function createReaders({ store, daemon, isAlive, onRead, onTrouble }: ReadersOptions) {
  const readers = new Map<string, Set<Reader>>();
  const timers: NodeJS.Timeout[] = [];
  let seen = newest();
  interrupt(daemon); // what an earlier life of ours began, nobody will end

  function newest(): number {
    return store.get<{ seq: number | null }>('newestEvent')?.seq ?? 0;
  }

  /** Only what that daemon had begun before: its next life may already have streams of its own. */
  function interrupt(name: string): void {
    const now = Date.now();
    store.commit('interruptStreams', [INTERRUPTED, now, name, now]).then(look, onTrouble);
  }

  function look(): void {
    if (readers.size === 0) return;
    attempt(() => {
      const upTo = newest();
      if (upTo === seen) return;
      for (const { stream } of store.all<{ stream: string }>('streamsSince', [seen])) wake(stream);
      seen = upTo;
    });
  }

  function lookForDead(): void {
    const dead = new Set<string>();
    attempt(() => {
      for (const stream of readers.keys()) {
        const owner = foreignOwner(stream);
        if (owner !== undefined && !dead.has(owner) && !isAlive(owner)) dead.add(owner);
      }
    });
    for (const owner of dead) interrupt(owner);
  }

  /** The other daemon that is to end this stream, if one is. */
  function foreignOwner(stream: string): string | undefined {
    const row = store.get<StreamRow>('stream', [stream]);
    return row && row.is_over === 0 && row.daemon !== daemon ? row.daemon : undefined;
  }

  /** What goes wrong with the disk is told; it must not end the daemon from within a timer. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      onTrouble(error);
    }
  }

  function wake(stream: string): void {
    for (const reader of readers.get(stream) ?? []) attempt(() => read(stream, reader));
  }

  function read(stream: string, reader: Reader): void {
    if (reader.isReading) return; // what it is doing will see this too
    reader.isReading = true;
    let rows: EventRow[] = [];
    do {
      rows = store.all<EventRow>('eventsAfter', [stream, reader.after]);
      for (const { seq, frame, is_last } of rows) {
        if (!readers.get(stream)?.has(reader)) return;
        if (reader.onEvent({ id: eventId(stream, seq), frame }) === false) return leave(stream, reader);
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
    if (readers.size === 0) for (const timer of timers.splice(0)) clearInterval(timer);
  }

  const follow: Streams['follow'] = ({ stream, after }: Place, onEvent, onEnd) => {
    const reader: Reader = { after, isReading: false, onEvent, onEnd };
    readers.set(stream, (readers.get(stream) ?? new Set()).add(reader));
    if (timers.length === 0) timers.push(setInterval(look, LOOK_MS).unref(), setInterval(lookForDead, DEAD_MS).unref());
    const owner = foreignOwner(stream);
    if (owner !== undefined && !isAlive(owner)) interrupt(owner);
    // Asked first: the last event may come in between, and it is read too.
    const wasOver = store.get<StreamRow>('stream', [stream])?.is_over === 1;
    read(stream, reader);
    if (wasOver && readers.get(stream)?.has(reader)) finish(stream, reader);
    return () => leave(stream, reader);
  };

  return {
    follow,
    wake,
    isRead: (stream: string): boolean => readers.has(stream),
    /** What the disk refuses can still be said to those who are here; they cannot come back to it. */
    handOver(stream: string, frame: Buffer, isLast: boolean): void {
      for (const reader of readers.get(stream) ?? []) {
        reader.onEvent({ id: '', frame });
        if (isLast) finish(stream, reader);
      }
    },
    close(): void {
      for (const timer of timers.splice(0)) clearInterval(timer);
      readers.clear();
    },
  };
}

export const eventId = (stream: string, seq: number): string => `${stream}.${seq}`;
