import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The one that takes minutes begins first, or everybody would wait for it alone in the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => moduleId.endsWith('test/chaos/tasks.test.ts');
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/nats.ts', 'test/support/tools.mjs', 'test/support/browser.ts'],
    setupFiles: ['test/support/seed.ts'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Real processes on two cores: more at once would only make each of them late.
    maxWorkers: 2,
    reporters: ['default', './test/support/tally.ts'],
  },
});
