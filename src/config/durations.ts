// A time as people write it: 30s, 500ms, 2m, 1h, 3d.

const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds, or undefined when it is no time at all. `bare` is the unit of a number without one. */
export function durationOf(text: string, bare: keyof typeof MILLISECONDS = 'ms'): number | undefined {
  const [, digits, unit = bare] = DURATION.exec(text.trim()) ?? [];
  return digits === undefined ? undefined : Math.round(Number(digits) * MILLISECONDS[unit as typeof bare]);
}
