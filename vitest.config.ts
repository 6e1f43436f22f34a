import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Whoever takes longest begins first: a long one that begins last is waited for by everybody. */
const LONGEST = [
  'chaos/tasks',
  'e2e/conformance',
  'e2e/containers',
  'e2e/lifecycle',
  'e2e/tasks-adoption',
  'e2e/readme',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      LONGEST.findIndex((name) => moduleId.endsWith(`test/${name}.test.ts`));
    const sorted = await super.sort(files);
    const first = sorted.filter((file) => rank(file) >= 0).sort((one, other) => rank(one) - rank(other));
    return [...first, ...sorted.filter((file) => rank(file) < 0)];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['build.ts', 'remains.ts', 'nats.ts', 'tools.mjs', 'browser.ts'].map((file) => `test/support/${file}`),
    setupFiles: ['test/support/seed.ts'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests wait for processes more than they compute: two workers a core keep both cores of a small machine busy.
    maxWorkers: 4,
    // Files share a worker and the modules it has loaded; loading them again for each file took a third of the time.
    isolate: false,
    unstubEnvs: true,
    reporters: ['default', './test/support/tally.ts'],
  },
});
