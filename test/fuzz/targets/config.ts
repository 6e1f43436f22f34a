// The configuration file: whatever is in it, it is read, or everything that is wrong with it is told.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import { scratch } from '../../support/scratch.ts';
import { configurations } from '../arbitraries/config.ts';
import { variantOf } from '../arbitraries/messages.ts';
import { eachInTurn, type Target } from '../target.ts';

export const config: Target<string> = {
  name: 'config',
  inputs: configurations,
  vary: variantOf,
  batch: 50,
  async open() {
    const dir = await scratch();
    const path = join(dir.path, 'troupe.json');
    return {
      feed: (inputs) =>
        eachInTurn(inputs, (input) => {
          writeFileSync(path, Buffer.from(input, 'latin1'));
          const loaded = loadConfig(path, { HOME: dir.path, A: 'a' });
          if (!loaded.ok && loaded.complaints.length === 0)
            throw new Error(`refused without a word: ${JSON.stringify(input)}`);
        }),
      [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
    };
  },
};
