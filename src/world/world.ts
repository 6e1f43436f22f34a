// What code may not take from a global: the time, a timer and chance. Whoever needs one of them is given a `World`, so that a
// test can drive calls, tasks, asks and sessions of several daemons with one virtual clock and a seed.

import { random } from './random.ts';

export type World = {
  /** Milliseconds on a clock that only runs forward: for deadlines and durations. */
  now(): number;
  /** Milliseconds since 1970, as people read them. */
  date(): number;
  /** Calls back once after that time, which may be longer than a timer of Node can wait. Returns how to cancel it. */
  after(ms: number, work: () => void): () => void;
  /** Calls back again and again. Returns how to end that. */
  every(ms: number, work: () => void): () => void;
  /** Unguessable bytes. */
  random(count: number): Buffer;
};

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** No timer of ours keeps a process alive that has nothing else to do. */
export const realWorld: World = {
  now: () => performance.now(),
  date: () => Date.now(),
  after,
  every(ms, work) {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
  random,
};

function after(ms: number, work: () => void): () => void {
  const due = performance.now() + ms;
  const step = (): void => {
    const left = due - performance.now();
    timer = left > LONGEST_TIMER_MS ? setTimeout(step, LONGEST_TIMER_MS) : setTimeout(work, Math.max(0, left));
    timer.unref();
  };
  let timer: NodeJS.Timeout;
  step();
  return () => clearTimeout(timer);
}

/** The clock that XState wants of whoever creates an actor. */
export const clockOf = ({ after }: Pick<World, 'after'>) => ({
  setTimeout: (work: (...args: unknown[]) => void, ms: number) => after(ms, work),
  clearTimeout: (cancel: (() => void) | undefined) => cancel?.(),
});
