// Whose calls were given up while the server worked on them: cancelled, or out of time. It may not have noticed, and still
// ask on their behalf; so for a while nobody else's call is taken for the only one that it can be working on.

import { now } from './deadlines.ts';
import type { Caller } from './echo.ts';
import { canAsk, type InFlight } from './request.ts';

/** As long as a call may last at all, if nothing else is configured. */
const REMEMBERED_MS = 600_000;
const MAX_REMEMBERED = 1_000;

export function createAbandoned() {
  const known = new Map<string, { readonly by: Caller; readonly until: number }>();

  return {
    add({ id, call }: Pick<InFlight, 'id' | 'call'>): void {
      if (!canAsk(call)) return;
      const [oldest] = known.keys();
      if (known.size >= MAX_REMEMBERED && oldest !== undefined) known.delete(oldest);
      const { principal, holder } = call;
      known.set(id, { by: { principal, ...(holder !== undefined && { holder }) }, until: now() + REMEMBERED_MS });
    },
    /** The server has done with it after all. */
    answered: (id: string): boolean => known.delete(id),
    /** Whoever works now has never heard of them. */
    clear: (): void => known.clear(),
    callers(): Caller[] {
      const at = now();
      for (const [id, { until }] of known) if (until < at) known.delete(id);
      return [...known.values()].map(({ by }) => by);
    },
  };
}
