// Leases: work that only one process at a time may do, for as long as a row says so. A lease is taken by compare-and-set and
// counts only once it was read back. Its time is that since the machine was started: the same for all processes, without jumps.

import { randomUUID } from 'node:crypto';
import type { Reads, Writes } from './port.ts';
import type { LeaseRow } from './rows.ts';

/** Longer than the work can take, as each of its requests has a time-out; short enough to wait for after a crash. */
export const LEASE_MS = 60_000;
/** A lease that ends later than this was taken before the machine was restarted, and is void. */
const LONGEST_MS = LEASE_MS + 1_000;

export type Leases = {
  /** Returns how to give the lease back, or undefined when another process has it. */
  take(name: string): Promise<(() => Promise<void>) | undefined>;
};

/** `uptime` counts milliseconds since the machine was started. */
export function createLeases(store: Reads & Writes, uptime: () => number = monotonic): Leases {
  return {
    async take(name) {
      const owner = randomUUID();
      const now = uptime();
      await store.commit('takeLease', [name, owner, now + LEASE_MS, now, now + LONGEST_MS]);
      const found = store.get<LeaseRow>('lease', [name]);
      if (found?.owner !== owner) return undefined;
      return async () => void (await store.commit('releaseLease', [name, owner, found.epoch]));
    },
  };
}

const monotonic = (): number => Number(process.hrtime.bigint() / 1_000_000n);
