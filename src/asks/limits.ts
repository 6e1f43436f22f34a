// What servers may have open: so many questions a second, so many bytes of them, so many in all. One that asks too much is
// refused before it costs anybody else anything.

import type { Member } from '../servers/member.ts';
import { type Allowance, allowance } from '../telemetry/allowance.ts';

export type Limits = ReturnType<typeof createLimits>;

/** Far more than people answer; hosts that answer by themselves are no flood yet. */
const PER_SECOND = 1_000;
const MAX_BYTES = 16 * 2 ** 20;

export function createLimits(maxOpen: () => number) {
  const paces = new WeakMap<Member, Allowance>();
  const bytesOf = new Map<string, number>();
  let open = 0;

  return {
    /** Whether a process asks too fast. Asking counts, whatever becomes of it. */
    isTooFast(member: Member): boolean {
      const pace = paces.get(member) ?? allowance(PER_SECOND);
      paces.set(member, pace);
      return !pace.take();
    },
    /** Takes room for one more of that server; returns how to give it back, or nothing when there is none. */
    take(server: string, bytes: number): (() => void) | undefined {
      const held = bytesOf.get(server) ?? 0;
      if (open >= maxOpen() || (held > 0 && held + bytes > MAX_BYTES)) return undefined;
      bytesOf.set(server, held + bytes);
      open++;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        open--;
        const left = (bytesOf.get(server) ?? bytes) - bytes;
        if (left > 0) bytesOf.set(server, left);
        else bytesOf.delete(server);
      };
    },
  };
}
