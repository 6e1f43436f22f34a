// What becomes of a task when its call has ended: how that is called, what is said of it, and what is not kept.

import type { Outcome, Signal } from '../calls/call.ts';
import type { Failure } from '../protocol/failures.ts';
import { elements, member, textAt } from '../protocol/json.ts';
import type { TaskRow } from '../store/rows.ts';
import { withoutControls } from '../telemetry/printable.ts';
import type { Ending } from './rows.ts';

export const INPUT = 'it waits for an answer; see troupe inbox, or fetch the result';
const MESSAGE_CHARACTERS = 1_000;
const NOTHING = Buffer.from('[]');

/** A tool that says that it failed has failed; MCP 2025-11-25 wants it so. */
export function endingOf(outcome: Outcome): Ending {
  const updated_at = Date.now();
  if (outcome.ok && !outcome.isError) return { status: 'completed', message: null, updated_at };
  if (outcome.ok) return { status: 'failed', message: shortened(saidBy(outcome.result)), updated_at };
  const { failure } = outcome;
  const said = failure.error && textAt(failure.error, ['message']);
  const message = shortened(said === undefined ? failure.message : `${failure.message}: ${said}`);
  return { status: failure.code === 'cancelled' ? 'cancelled' : 'failed', message, updated_at };
}

/** A result that is too large is not kept; that it was there is. */
export function withinBytes(outcome: Outcome, maxBytes: number): Outcome {
  const bytes = outcome.ok ? outcome.result.length : (outcome.failure.error?.length ?? 0);
  if (bytes <= maxBytes) return outcome;
  const message = `the result has ${bytes} bytes and was not kept; x-troupe.tasks.maxResultBytes allows ${maxBytes}`;
  return { ok: false, failure: { code: 'tooLarge', delivery: 'failed', message } };
}

/** The last attempt may not have been sent; an earlier one was, and nobody knows what became of it. */
export function ofAll(outcome: Outcome, { attempt, phase }: Pick<TaskRow, 'attempt' | 'phase'>): Outcome {
  const earlier = attempt - (phase === 'dispatching' ? 1 : 0);
  if (outcome.ok || outcome.failure.delivery !== 'not sent' || earlier === 0) return outcome;
  return { ok: false, failure: { ...outcome.failure, delivery: 'outcome unknown' } };
}

/** Its server went away because we did. */
export function stopped(outcome: Outcome, { server, tool }: Pick<TaskRow, 'server' | 'tool'>): Outcome {
  if (outcome.ok || outcome.failure.code !== 'lost') return outcome;
  const message = `interrupted, outcome unknown: troupe was stopped while ${tool} of ${server} ran`;
  return { ok: false, failure: { ...outcome.failure, message } };
}

/** Its server takes no calls at this moment; a task has time. */
export function isPassing({ code, state }: Failure): boolean {
  return code === 'busy' || (code === 'unavailable' && PASSING.has(state ?? ''));
}

/** States of a server that pass by themselves. */
export const PASSING: ReadonlySet<string> = new Set(['waiting', 'draining', 'closing', 'opening', 'asleep']);

/** The first words of a tool's own report. */
function saidBy(result: Buffer): string {
  for (const block of elements(member(result, 'content') ?? NOTHING)) {
    const text = textAt(block, ['text']);
    if (text) return text;
  }
  return 'the tool reported an error';
}

/** Of what a server says of its progress, as much as a row should hold. */
export function keptOf({ progress, total, message }: Extract<Signal, { type: 'progress' }>): string {
  return JSON.stringify({ progress, total, message: message?.slice(0, MESSAGE_CHARACTERS) });
}

const shortened = (text: string): string => withoutControls(text).slice(0, MESSAGE_CHARACTERS);
