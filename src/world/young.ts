// How much room V8 gives to young objects. It doubles that whenever many of them have lived on, which at the start of the daemon
// nearly all do, and does not take it back: 12 MB that are hardly used again. So it waits until the start is over (ADR 38).

/** Not imported: that takes a millisecond, and every verb loads this file. */
const growBy = (factor: number): void =>
  process.getBuiltinModule('node:v8').setFlagsFromString(`--semi-space-growth-factor=${factor}`);

const USUAL = 2;
const NOT = 1;
let isHeld = false;

export function holdYoung(): void {
  isHeld = true;
  growBy(NOT);
}

export function letYoungGrow(): void {
  isHeld = false;
  growBy(USUAL);
}

/** V8 lets it grow again with each thread that begins. */
export function holdYoungStill(): void {
  if (isHeld) growBy(NOT);
}

/** V8 takes code that was kept only under the flags that it was made under. */
export function underUsualFlags<Result>(work: () => Result): Result {
  if (!isHeld) return work();
  growBy(USUAL);
  try {
    return work();
  } finally {
    growBy(NOT);
  }
}
