// How much of something each principal may have at once, so that nobody takes the others' share.

export type Quota = {
  /** How to give it back, or undefined when that principal has as many as it may. */
  take(principal: string): (() => void) | undefined;
};

export function createQuota(most: number): Quota {
  const counts = new Map<string, number>();
  return {
    take(principal) {
      const count = counts.get(principal) ?? 0;
      if (count >= most) return undefined;
      counts.set(principal, count + 1);
      return () => {
        const left = (counts.get(principal) ?? 0) - 1;
        if (left > 0) counts.set(principal, left);
        else counts.delete(principal);
      };
    },
  };
}
