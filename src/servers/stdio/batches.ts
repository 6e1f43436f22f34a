// Frames on their way into a pipe. A write is a system call and wakes the reader, so all frames of one turn of the event loop
// leave together. Where a turn has many, half of them leave as soon as they are there: the reader works on them while the rest
// is made, where otherwise one of the two would always wait for the other (ADR 43). How many a turn has is taken from the turn
// before.

/** Fewer are not worth a second write. */
const MANY = 16;
/** The halves of a turn like the one before; what a larger turn has beyond them leaves at its end. */
const MOST_EARLY = 2;

type Batches = {
  add(frame: Buffer): void;
  /** What has been added leaves now. */
  flush(): void;
};

export function createBatches(write: (batch: Buffer) => void): Batches {
  let frames: Buffer[] = [];
  let inTurn = 0;
  let half = Number.POSITIVE_INFINITY;
  let early = 0;

  function flush(): void {
    if (frames.length === 0) return;
    const batch = frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames);
    frames = [];
    write(batch);
  }

  function endTurn(): void {
    half = inTurn >= MANY ? Math.floor(inTurn / 2) : Number.POSITIVE_INFINITY;
    inTurn = 0;
    early = 0;
    flush();
  }

  return {
    add(frame: Buffer): void {
      frames.push(frame);
      inTurn++;
      if (inTurn === 1) setImmediate(endTurn);
      else if (frames.length >= half && early < MOST_EARLY) {
        early++;
        flush();
      }
    },
    flush,
  };
}
