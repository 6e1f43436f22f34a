// What becomes of a task when its call has ended: whether that is its end, what that is called, and what is not kept.

import type { TaskEnding } from '../../machines/task.ts';
import { FORGOTTEN, type Outcome, type Signal } from '../calls/call.ts';
import { type Failure, TroupeError } from '../protocol/failures.ts';
import { elements, member, textAt } from '../protocol/json.ts';
import { isPassing } from '../servers/states.ts';
import type { TaskRow } from '../store/rows.ts';
import { withoutControls } from '../telemetry/printable.ts';

export const INPUT = 'it waits for an answer; see troupe inbox, or fetch the result';
const MESSAGE_CHARACTERS = 1_000;
const NOTHING = Buffer.from('[]');
/** A call that takes its daemon down with it must not do so for ever. */
const MAX_ATTEMPTS = 3;

export type Ending = Pick<TaskRow, 'message' | 'updated_at'> & { readonly status: TaskEnding };
/** What the operator allows, and what the server can do. */
export type ServerRules = {
  /** Whether a call that was lost may be made again. */
  readonly mayRerun: (row: TaskRow) => boolean;
  /** Whether what that server runs outlives its connection. */
  readonly isRemote: (server: string) => boolean;
};

// ── Is it the end? ───────────────────────────────────────────────────────────

/** What the end of its call means to the task: the event of its chart. */
export function endOfCall(outcome: Outcome, row: TaskRow, { mayRerun, isRemote }: ServerRules) {
  if (outcome.ok) return 'answered';
  const { failure } = outcome;
  if (failure.delivery === 'not sent' && passes(failure)) return row.upstream === null ? 'unsent' : 'lost.followed';
  if (failure.code !== 'lost' || row.phase === 'queued') return 'answered';
  const worksOn = row.upstream !== null && failure.state !== FORGOTTEN && isRemote(row.server);
  if (worksOn) return 'lost.followed';
  return row.attempt < MAX_ATTEMPTS && mayRerun(row) ? 'lost.rerun' : 'answered';
}

/** Its server takes no calls at this moment; a task has time. */
function passes({ code, state }: Failure): boolean {
  return code === 'busy' || (code === 'unavailable' && isPassing(state ?? ''));
}

/** The disk does not take it now, and did not. */
export const isOutage = (error: unknown): boolean => error instanceof TroupeError && error.code === 'unavailable';

// ── What is kept ─────────────────────────────────────────────────────────────

/** The outcome as it is kept: within its bounds, and true of all attempts. */
export function outcomeToKeep(outcome: Outcome, row: TaskRow, maxBytes: number): Outcome {
  return ofAllAttempts(withinBytes(outcome, maxBytes), row);
}

/** A tool that says that it failed has failed; MCP 2025-11-25 wants it so. */
export function endingOf(outcome: Outcome, updated_at: number): Ending {
  if (outcome.ok && !outcome.isError) return { status: 'completed', message: null, updated_at };
  if (outcome.ok) return { status: 'failed', message: shortened(saidBy(outcome.result)), updated_at };
  const { failure } = outcome;
  const said = failure.error && textAt(failure.error, ['message']);
  const message = shortened(said === undefined ? failure.message : `${failure.message}: ${said}`);
  return { status: failure.code === 'cancelled' ? 'cancelled' : 'failed', message, updated_at };
}

/** A result that is too large is not kept; that it was there is. */
function withinBytes(outcome: Outcome, maxBytes: number): Outcome {
  const bytes = outcome.ok ? outcome.result.length : (outcome.failure.error?.length ?? 0);
  if (bytes <= maxBytes) return outcome;
  const message = `the result has ${bytes} bytes and was not kept; x-troupe.tasks.maxResultBytes allows ${maxBytes}`;
  return { ok: false, failure: { code: 'tooLarge', delivery: 'failed', message } };
}

/** The last attempt may not have been sent; an earlier one was, and nobody knows what became of it. */
function ofAllAttempts(outcome: Outcome, { attempt, phase }: TaskRow): Outcome {
  const earlier = attempt - (phase === 'dispatching' ? 1 : 0);
  if (outcome.ok || outcome.failure.delivery !== 'not sent' || earlier === 0) return outcome;
  return { ok: false, failure: { ...outcome.failure, delivery: 'outcome unknown' } };
}

/** The first words of a tool's own report. */
function saidBy(result: Buffer): string {
  for (const block of elements(member(result, 'content') ?? NOTHING)) {
    const text = textAt(block, ['text']);
    if (text) return text;
  }
  return 'the tool reported an error';
}

/** As much of a server's progress as a row should hold. */
export function progressToKeep({ progress, total, message }: Extract<Signal, { type: 'progress' }>): string {
  return JSON.stringify({ progress, total, message: message?.slice(0, MESSAGE_CHARACTERS) });
}

const shortened = (text: string): string => withoutControls(text).slice(0, MESSAGE_CHARACTERS);

// ── Interruptions ────────────────────────────────────────────────────────────

/** The server of a task went away because its daemon stops. */
export function stopped(outcome: Outcome, { server, tool }: TaskRow): Outcome {
  if (outcome.ok || outcome.failure.code !== 'lost') return outcome;
  const message = `interrupted, outcome unknown: troupe was stopped while ${tool} of ${server} ran`;
  return { ok: false, failure: { ...outcome.failure, message } };
}

/** The outcome of a task whose daemon was killed after it had been sent. */
export function interrupted({ server, tool }: TaskRow): Outcome {
  const message = `interrupted, outcome unknown: troupe was killed while ${tool} of ${server} ran`;
  return { ok: false, failure: { code: 'lost', delivery: 'outcome unknown', message, server } };
}

/** The outcome of a task whose params cannot be read any more. */
export function unreadable({ server, tool, phase }: TaskRow): Outcome {
  const delivery = phase === 'queued' ? 'not sent' : 'outcome unknown';
  const message = `interrupted, ${delivery}: what ${tool} of ${server} was to be called with is sealed with another key`;
  return { ok: false, failure: { code: 'internal', delivery, message, server } };
}
