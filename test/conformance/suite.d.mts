export type Result = {
  readonly exitCode: number | undefined;
  /** All that the suite printed. */
  readonly output: string;
  readonly scenarios: number;
  readonly passed: number;
  readonly failed: number;
  readonly warned: number;
  /** One line a failed check, or one that is only warned of: scenario, check, what was wrong. */
  readonly complaints: readonly string[];
};

export function runSuite(tool: string, words: readonly string[], env?: Record<string, string>): Promise<Result>;
