// Chance that can be had again: the same seed makes the same choices in the same order.

export type Random = {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  oneOf<Choice>(choices: readonly Choice[]): Choice;
};

/** Mulberry32: small, and good enough to choose whom to kill. */
export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return { between, oneOf: (choices) => choices[between(0, choices.length - 1)] as (typeof choices)[number] };
}

/** A short run takes each choice once this way before it throws dice: it must not leave one out. */
export function inAnyOrder<Choice>(choices: readonly Choice[], dice: Random): Choice[] {
  const left = [...choices];
  return choices.flatMap(() => left.splice(dice.between(0, left.length - 1), 1));
}

/** TROUPE_CHAOS_SEED replays a run; otherwise each run is another one. */
export const chosenSeed = (): number => Number(process.env.TROUPE_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
