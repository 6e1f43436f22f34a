import type { Result } from './suite.mjs';

export type ClientRun = {
  readonly title: string;
  readonly tool: string;
  readonly scenario: string;
  /** Why it does not pass, if that is known. */
  readonly expected: string | undefined;
};

export const clientRuns: readonly ClientRun[];
export function runClient(
  stage: { readonly address: string },
  run: ClientRun,
): Promise<Result & { readonly isGood: boolean }>;
