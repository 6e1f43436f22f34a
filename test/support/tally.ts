// Ends a run with the line that other programs read: `N passed, N failed`.

import type { Reporter, TestModule } from 'vitest/node';

export default class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failed = tests.filter((test) => test.result().state === 'failed').length;
    const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length;
    process.on('exit', () => console.log(`${passed} passed, ${failed + broken + errors.length} failed`));
  }
}
