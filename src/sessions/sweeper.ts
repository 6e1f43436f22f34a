// Once a second: who has left, who was ended by another daemon, and which rows must show that they are used.

import type { Store } from '../store/store.ts';
import type { Live } from './live.ts';

export type SweeperOptions = {
  readonly store: Store;
  readonly live: ReadonlyMap<string, Live>;
  readonly idleMs: number;
  readonly onTrouble: (error: unknown) => void;
};

const SWEEP_MS = 1_000;
const TOUCH_MS = 60_000;
const EXPIRE_EVERY = 60;

export function startSweeper({ store, live, idleMs, onTrouble }: SweeperOptions) {
  const touchMs = Math.min(TOUCH_MS, idleMs / 4);
  let lookedAt = Date.now();
  let sweeps = 0;
  const timer = setInterval(sweep, SWEEP_MS).unref();

  function sweep(): void {
    try {
      // A little of the time before is looked at again: the clocks of two processes need not agree.
      for (const { id } of store.all<{ id: string }>('sessionsEnded', [lookedAt - 2 * SWEEP_MS]))
        live.get(id)?.actor.send({ type: 'ended' });
      lookedAt = Date.now();
      for (const each of live.values()) rest(each);
      if (sweeps++ % EXPIRE_EVERY === 0) store.write('expireSessions', [lookedAt, lookedAt - idleMs]);
    } catch (error) {
      onTrouble(error);
    }
  }

  function rest(each: Live): void {
    const { session, actor } = each;
    const isUsed = each.holders > 0 || session.isBusy;
    if (isUsed) each.usedAt = Date.now();
    if (each.usedAt - each.touchedAt > touchMs) touch(each);
    if (!isUsed && Date.now() - each.usedAt > SWEEP_MS && actor.getSnapshot().matches('open'))
      actor.send({ type: 'left', mustStay: session.mustStay });
  }

  function touch(each: Live): void {
    each.touchedAt = each.usedAt;
    store.write('touchSession', [each.usedAt, each.session.identity.id]);
  }

  return {
    stop(): void {
      clearInterval(timer);
      for (const each of live.values()) touch(each);
    },
  };
}
