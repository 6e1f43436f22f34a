// Something that takes inputs from strangers: where they come from, and how they are given to it.

import type fc from 'fast-check';
import type { Random } from '../chaos/random.ts';
import type { House } from './house.ts';

export type Target<Input> = {
  readonly name: string;
  /** Inputs are plain JSON, with bytes as latin1 text, so that one that found something can be kept. */
  readonly inputs: fc.Arbitrary<Input>;
  /** Another input like the first, with something of the second in it; without it each input is drawn for itself. */
  readonly vary?: (input: Input, other: Input, dice: Random) => Input;
  /** How many inputs are given at once. */
  readonly batch: number;
  /** It stops the daemon: the neighbour is called when it is back. */
  readonly stopsDaemon?: true;
  open(house: House): Promise<Stage<Input>>;
};

export type Stage<Input> = AsyncDisposable & {
  /** Resolves when all of them have been taken, whatever became of them; rejects when one led to what must not be. */
  feed(inputs: readonly Input[]): Promise<void>;
};

/** A stage that needs no cleaning up. */
export const stage = <Input>(feed: (inputs: readonly Input[]) => Promise<void> | void): Stage<Input> => ({
  feed: async (inputs) => feed(inputs),
  async [Symbol.asyncDispose]() {},
});

/** For what is looked at in this thread, from which the neighbour is called too. */
export async function eachInTurn<Input>(inputs: readonly Input[], look: (input: Input) => void): Promise<void> {
  let began = performance.now();
  for (const input of inputs) {
    look(input);
    const now = performance.now();
    if (now - began > HANG_MS) throw new Error(`it took ${Math.round(now - began)} ms: ${JSON.stringify(input)}`);
    if (now - began > TURN_MS) await new Promise(setImmediate);
    else continue;
    began = performance.now();
  }
}
const TURN_MS = 20;
const HANG_MS = 1_000;
