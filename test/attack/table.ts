// Ends a run with a table: each attack, how many tries it made, whether everything held, and what fell if not.

import type { Reporter, TestModule } from 'vitest/node';

export type Outcome = {
  readonly surface: string;
  readonly attack: string;
  tries: number;
  /** What did not hold, the first few. */
  fell: string[];
  leftOut?: string;
};
declare module 'vitest' {
  interface TaskMeta {
    outcome?: Outcome;
  }
}

const WHY_CHARACTERS = 160;

export default class Table implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const rows = tests.flatMap((test) => {
      const { outcome } = test.meta();
      if (!outcome) return [];
      const error = test.result().errors?.[0]?.message ?? '';
      const isHeld = test.result().state !== 'failed';
      const why = outcome.leftOut ?? outcome.fell[0] ?? (isHeld ? '' : error);
      const end = outcome.leftOut !== undefined ? 'left out' : isHeld ? 'held' : 'FELL';
      return [[`${outcome.surface}: ${outcome.attack}`, String(outcome.tries), end, plain(why)] as const];
    });
    if (rows.length === 0) return;
    const width = (column: 0 | 1 | 2) => Math.max(...rows.map((row) => row[column].length));
    const [first, second, third] = [width(0), width(1), width(2)];
    for (const [attack, tries, end, why] of rows)
      console.log(`${attack.padEnd(first)}  ${tries.padStart(second)}  ${end.padEnd(third)}  ${why}`.trimEnd());
  }
}

const plain = (text: string): string => JSON.stringify(text).slice(1, -1).slice(0, WHY_CHARACTERS);
