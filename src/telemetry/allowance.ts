// So many a second, and a count of those held back: for log lines and messages of servers, which may come in floods.

import { realWorld, type World } from '../world/world.ts';

export type Allowance = { take(): boolean; readonly heldBack: number; forget(): number };

export function allowance(perSecond: number, { now }: Pick<World, 'now'> = realWorld): Allowance {
  let left = perSecond;
  let refilledAt = now();
  let heldBack = 0;
  return {
    take() {
      const elapsed = now() - refilledAt;
      if (elapsed > 100) {
        left = Math.min(perSecond, left + (elapsed / 1000) * perSecond);
        refilledAt += elapsed;
      }
      if (left < 1) {
        heldBack++;
        return false;
      }
      left--;
      return true;
    },
    get heldBack() {
      return heldBack;
    },
    forget() {
      const count = heldBack;
      heldBack = 0;
      return count;
    },
  };
}
