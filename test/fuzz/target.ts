// Something that takes inputs from strangers: where they come from, and how they are given to it.

import type fc from 'fast-check';
import type { House } from './house.ts';

export type Target<Input> = {
  readonly name: string;
  /** Inputs are plain JSON, with bytes as latin1 text, so that one that found something can be kept. */
  readonly inputs: fc.Arbitrary<Input>;
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
