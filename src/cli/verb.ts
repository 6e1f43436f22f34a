// What every verb is given, and what it gives back: an exit code. It throws for anything that is not its own outcome.

import { durationOf } from '../config/durations.ts';
import type { Paths } from '../config/paths.ts';
import { type Output, usage } from './output.ts';

export type Cli = {
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly paths: Paths;
};

export const OK = 0;
export const FAILED = 1;
export const TOOL_ERROR = 5;
export const INTERRUPTED = 130;

/** `30s`, `500ms`, `2m`, `1h`; a bare number is seconds. */
export function durationMs(text: string, option: string): number {
  const ms = durationOf(text, 's') ?? 0;
  if (!(ms > 0)) throw usage(`${option} wants a time like 500ms, 30s, 2m, 1h or 7d, not '${text}'`);
  return ms;
}
