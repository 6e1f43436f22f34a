// Preloaded (`node --import`), it lets a process believe in another time of day: off by as many milliseconds as the file says
// that TROUPE_TEST_CLOCK names, and by none while there is no such file. Monotonic clocks and timers are left alone.

import { readFileSync } from 'node:fs';

const file = process.env.TROUPE_TEST_CLOCK;
const Real = Date;
const LOOK_MS = 20;
let lookedAt = Number.NEGATIVE_INFINITY;
let offset = 0;

function now() {
  if (performance.now() - lookedAt > LOOK_MS) {
    lookedAt = performance.now();
    try {
      offset = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      offset = 0; // nobody has set the clock yet
    }
  }
  return Real.now() + offset;
}

if (file)
  globalThis.Date = new Proxy(Real, {
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    construct: (target, args, self) => Reflect.construct(target, args.length > 0 ? args : [now()], self),
    apply: () => new Real(now()).toString(),
  });
