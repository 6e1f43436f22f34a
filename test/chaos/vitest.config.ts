import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/chaos/*.chaos.ts'],
    globalSetup: ['build.ts', 'remains.ts', 'nats.ts'].map((file) => `test/support/${file}`),
    // Each has the machine to itself: what is measured is troupe, not the neighbour.
    fileParallelism: false,
    reporters: ['default', './test/support/tally.ts'],
    disableConsoleIntercept: true,
  },
});
