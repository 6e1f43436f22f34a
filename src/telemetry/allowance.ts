// So many a second, and a count of what was held back. For words that come from outside and may come in floods.

export type Allowance = { take(): boolean; readonly heldBack: number; forget(): number };

export function allowance(perSecond: number, now: () => number = () => performance.now()): Allowance {
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
