import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/attack/*.attack.ts'],
    globalSetup: ['build.ts', 'remains.ts', 'nats.ts'].map((file) => `test/support/${file}`),
    // Each has the machine to itself: who is slow then was made so by the attack.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/attack/table.ts', './test/support/tally.ts'],
    disableConsoleIntercept: true,
  },
});
