// What must be written while the disk is full or locked: it is kept in memory and tried again until it stands.

import { setTimeout as wait } from 'node:timers/promises';
import { TroupeError } from '../protocol/failures.ts';

const RETRY_MS = 1_000;

/** The disk does not take it now, and did not. */
export const isOutage = (error: unknown): boolean => error instanceof TroupeError && error.code === 'unavailable';

/** Any other error is a bug of ours, and thrown. */
export async function patiently<Value>(
  write: () => Promise<Value>,
  isOver: () => boolean,
  onTrouble: (error: unknown) => void,
): Promise<Value> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (isOver() || !isOutage(error)) throw error;
      onTrouble(error);
      await wait(RETRY_MS, undefined, { ref: false });
    }
  }
}
