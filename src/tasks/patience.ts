// What must be written while the disk is full or locked: it is kept in memory and tried again until it stands.

import { setTimeout as wait } from 'node:timers/promises';
import { TroupeError } from '../failures.ts';

const RETRY_MS = 1_000;

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
      if (isOver() || !(error instanceof TroupeError) || error.code !== 'unavailable') throw error;
      onTrouble(error);
      await wait(RETRY_MS, undefined, { ref: false });
    }
  }
}
