import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/chaos/*.chaos.ts'],
    globalSetup: ['test/support/nats.ts'],
    reporters: ['default', './test/support/tally.ts'],
    disableConsoleIntercept: true,
  },
});
