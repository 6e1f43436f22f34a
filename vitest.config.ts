import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/nats.ts', 'test/support/tools.mjs', 'test/support/browser.ts'],
    setupFiles: ['test/support/seed.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Real processes on two cores: more at once would only make each of them late.
    maxWorkers: 2,
    reporters: ['default', './test/support/tally.ts'],
  },
});
