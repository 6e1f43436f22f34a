// One at a time across processes: a row that says who works, and until when it is believed. It is taken by
// compare-and-set and counts only once it was read back from the disk. The time is that since this machine was started,
// which is the same for all its processes and does not jump.

import { randomUUID } from 'node:crypto';
import type { LeaseRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

/** Longer than the work can take, whose every request has a limit of its own; short enough to wait for after a crash. */
export const LEASE_MS = 60_000;
/** Who is believed for longer than this can only have been believed before the machine was started anew. */
const LONGEST_MS = LEASE_MS + 1_000;

export type Leases = {
  /** Returns how to give it back, or nothing when somebody else has it. */
  take(name: string): Promise<(() => Promise<void>) | undefined>;
};

export function createLeases(store: Store): Leases {
  return {
    async take(name) {
      const owner = randomUUID();
      const now = Number(process.hrtime.bigint() / 1_000_000n);
      await store.commit('takeLease', [name, owner, now + LEASE_MS, now, now + LONGEST_MS]);
      const found = store.get<LeaseRow>('lease', [name]);
      if (found?.owner !== owner) return undefined;
      return async () => void (await store.commit('releaseLease', [name, owner, found.epoch]));
    },
  };
}
