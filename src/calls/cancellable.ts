// The calls that somebody may cancel by their request id: the principal who made them, and nobody else.

import type { Call } from './call.ts';
import type { Lane } from './lane.ts';
import type { InFlight } from './request.ts';

export type Cancellable = ReturnType<typeof createCancellable>;

export function createCancellable() {
  const known = new Map<string, { lane: Lane; request: InFlight }>();
  return {
    add(lane: Lane, request: InFlight): void {
      known.set(keyOf(request.call), { lane, request });
    },
    remove: (call: Call): boolean => known.delete(keyOf(call)),
    has: (principal: string, requestId: string): boolean => known.has(keyOf({ principal, requestId })),
    /** False when that principal has no such call in flight. */
    cancel(principal: string, requestId: string, why: string): boolean {
      const found = known.get(keyOf({ principal, requestId }));
      found?.lane.cancel(found.request, why);
      return found !== undefined;
    },
  };
}

const keyOf = ({ principal, requestId }: Pick<Call, 'principal' | 'requestId'>): string => `${principal} ${requestId}`;
