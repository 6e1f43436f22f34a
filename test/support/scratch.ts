// A directory of the test's own, gone with everything in it when the scope ends.
// Use: `await using dir = await scratch()`, then `dir.path`.

import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Scratch = AsyncDisposable & { readonly path: string };

/** `within` is for what other users shall see: the usual place is closed to them. */
export async function scratch(within = tmpdir()): Promise<Scratch> {
  const path = await mkdtemp(join(await realpath(within), 'troupe-')); // macOS links /tmp elsewhere
  return {
    path,
    async [Symbol.asyncDispose]() {
      await rm(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
