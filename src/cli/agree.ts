// A question before something is changed. Only a person at a terminal can answer it; whoever is none must have said so.

import { createInterface } from 'node:readline/promises';
import { usage } from './output.ts';
import type { Cli } from './verb.ts';

/** `otherwise` is what to say where nobody can be asked. */
export async function agrees({ output }: Cli, question: string, otherwise: string): Promise<boolean> {
  if (!output.isWatched || !process.stdin.isTTY) throw usage(otherwise);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
