import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/fuzz/*.fuzz.ts'],
    globalSetup: ['build.ts', 'remains.ts', 'nats.ts'].map((file) => `test/support/${file}`),
    fileParallelism: false,
    reporters: ['default', './test/support/tally.ts'],
    disableConsoleIntercept: true,
  },
});
