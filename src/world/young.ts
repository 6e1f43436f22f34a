// How much room V8 gives to young objects. V8 doubles that room whenever many of them have lived on, which nearly all do that the
// start of the daemon makes, and it does not take it back: 12 MB that are hardly used again. So the room grows only from when the
// daemon has started (ADR 38).

/** Not imported: that takes a millisecond, and every verb loads this file. */
const growBy = (factor: number): void =>
  process.getBuiltinModule('node:v8').setFlagsFromString(`--semi-space-growth-factor=${factor}`);

/** The factor that V8 has by itself, and the one with which the room stays as large as it is. */
const USUAL = 2;
const NONE = 1;
/** What V8 was told last: it cannot be asked. */
let isHeld = false;

export function holdYoung(): void {
  isHeld = true;
  growBy(NONE);
}

export function letYoungGrow(): void {
  isHeld = false;
  growBy(USUAL);
}

/** V8 lets it grow again with each thread that begins. */
export function holdYoungStill(): void {
  if (isHeld) growBy(NONE);
}

/** V8 takes code that was kept only under the flags that it was made under. */
export function underUsualFlags<Result>(work: () => Result): Result {
  if (!isHeld) return work();
  growBy(USUAL);
  try {
    return work();
  } finally {
    growBy(NONE);
  }
}
