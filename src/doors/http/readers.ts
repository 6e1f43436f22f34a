// Who reads which stream here. A stream has one reader: a later one takes over, because it is nearly always the same host,
// back before we noticed that its old connection is dead. A session has only so many.

export type Reader = {
  readonly session: string;
  readonly stream: string;
  /** It waits for no answer. */
  readonly isStanding: boolean;
  /** Ends the response, not the stream. */
  retire(): void;
};

export type Readers = ReturnType<typeof createReaders>;

export function createReaders(maxPerSession: number) {
  const byStream = new Map<string, Reader>();
  const bySession = new Map<string, Set<Reader>>();

  function leave(reader: Reader): void {
    if (byStream.get(reader.stream) === reader) byStream.delete(reader.stream);
    const others = bySession.get(reader.session);
    others?.delete(reader);
    if (others?.size === 0) bySession.delete(reader.session);
  }

  return {
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
