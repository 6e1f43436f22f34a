// The calls that somebody may cancel by their request id: the principal who made them, and nobody else.

import type { Call } from './call.ts';

export type Cancellable = ReturnType<typeof createCancellable>;
type Named = Pick<Call, 'principal' | 'requestId'>;

export function createCancellable() {
  const known = new Map<string, (why: string) => void>();
  return {
    /** A call that goes on elsewhere is added anew, and then is cancelled there. */
    add(call: Named, cancel: (why: string) => void): void {
      known.set(keyOf(call), cancel);
    },
    remove: (call: Named): boolean => known.delete(keyOf(call)),
    has: (principal: string, requestId: string): boolean => known.has(keyOf({ principal, requestId })),
    /** False when that principal has no such call in flight. */
    cancel(principal: string, requestId: string, why: string): boolean {
      const cancel = known.get(keyOf({ principal, requestId }));
      cancel?.(why);
      return cancel !== undefined;
    },
  };
}

const keyOf = ({ principal, requestId }: Named): string => `${principal} ${requestId}`;
