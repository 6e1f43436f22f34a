import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/chaos/*.chaos.ts'],
    globalSetup: ['test/support/nats.ts'],
    // Each has the machine to itself: what is measured is troupe, not the neighbour.
    fileParallelism: false,
    reporters: ['default', './test/support/tally.ts'],
    disableConsoleIntercept: true,
  },
});
