// Who uses the nats-server of a state directory: every daemon on it holds a lock of its own for as long as it does, and
// takes its turn to start or to end it. So two never start it at once, and only the last one ends it.

import { setTimeout as wait } from 'node:timers/promises';
import { TroupeError } from '../protocol/failures.ts';
import { acquireLock, isHeld, type Lock, locksIn } from '../store/lock.ts';

export type BrokerUsers = {
  /** Does what nobody else may do at the same time. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>;
  /** The same for whoever cannot wait any longer; nothing is done when it is not our turn in time. */
  inTurnNow(work: () => void): void;
  /** Nothing when somebody of that name uses it already. */
  enter(name: string): Lock | undefined;
  /** Whether anybody uses it, beside the one of that name. */
  isUsed(beside?: string): boolean;
};

// A start may take its time: three attempts, each with a deadline of its own.
const PATIENCE_MS = 45_000;
const POLL_MS = 25;
const HURRY_MS = 1_000;
const TURN = 'turn';
const USERS = 'daemon';

export function brokerUsers(directory: string): BrokerUsers {
  async function turn(): Promise<Lock> {
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const lock = acquireLock(directory, TURN, 0);
      if (lock) return lock;
      await wait(POLL_MS);
    }
    const message = `another troupe daemon has been starting the nats-server in ${directory} for too long; end it.`;
    throw new TroupeError('busy', message);
  }

  return {
    async inTurn(work) {
      const lock = await turn();
      try {
        return await work();
      } finally {
        lock.release();
      }
    },
    inTurnNow(work) {
      const lock = acquireLock(directory, TURN, HURRY_MS);
      if (lock) work();
      lock?.release();
    },
    enter: (name) => acquireLock(directory, name),
    isUsed: (beside) => locksIn(directory, USERS).some((name) => name !== beside && isHeld(directory, name)),
  };
}
