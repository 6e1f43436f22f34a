// Whose calls ended at a server a moment ago: a line that it logs just after an answer is about that call, and must not be
// given to whoever is served next, if that is somebody else.

import type { Call } from './call.ts';
import { now } from './deadlines.ts';

export type Caller = Pick<Call, 'principal' | 'holder'>;

export function createEcho() {
  let last: { by: Caller; at: number } | undefined;
  let before: typeof last;

  return {
    /** Returns when that was: now. */
    settled(by: Caller): number {
      const at = now();
      if (last && !isSame(by, last.by)) before = last;
      last = { by, at };
      return at;
    },
    recent(withinMs: number): Caller[] {
      const since = now() - withinMs;
      return [last, before].flatMap((each) => (each && each.at > since ? [each.by] : []));
    },
  };
}

const isSame = (a: Caller, b: Caller): boolean => a.principal === b.principal && a.holder === b.holder;
