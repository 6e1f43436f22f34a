// The words of tasks: a call whose outcome is kept and fetched later. A task belongs to a principal, whichever of its hosts
// made it and whichever daemon runs it; another principal's id is answered exactly as one that does not exist.

import type { Door, Outcome, Signal, TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import { jsonOf } from '../protocol/json.ts';
import type { TaskRow } from '../store/rows.ts';

/** What shall be called as a task. */
export type Order = {
  readonly principal: string;
  readonly door: Door;
  readonly server: string;
  readonly tool: string;
  /** The params of `tools/call` as the server knows them, without `task`. */
  readonly params: Buffer;
  /** The host's session that wants it, and is told of it. */
  readonly session?: string;
  readonly ttlMs?: number;
  /** The same key of the same principal is the same task. */
  readonly key?: string;
  /** Whether the host that made it could answer such a question, if it came to fetch the result. */
  readonly canAnswer?: (method: string, params: Buffer) => boolean;
};

/** What happens to a task, for the session that made it. */
export type TaskNews = {
  readonly task: TaskView;
  readonly session: string | undefined;
  /** What its call tells; without one it is the status that has changed. */
  readonly signal?: Signal;
  readonly progressToken?: string;
};

/** Without a principal it is the owner of this machine, who may see and end everything. */
export type Principal = string | undefined;

/** What doors do with tasks. Throws TroupeErrors: `unknownName` for an id that is none, or another principal's. */
export type Tasks = {
  /**
   * Resolves when it is on the disk. `busy` beyond the principal's limit, `unavailable` where nothing can be recorded or its
   * server takes no calls, `unknownServer`, and `invalid` for a key that was used for another call.
   */
  create(order: Order): Promise<TaskView>;
  get(id: string, principal: Principal): TaskView;
  /** Newest first. `invalid` for a cursor that is none. */
  list(principal: Principal, cursor?: string): { readonly tasks: TaskView[]; readonly next?: string };
  /** Resolves when it has ended, with exactly what the call came to; rejects with the signal's reason when it is aborted. */
  outcome(id: string, principal: Principal, signal?: AbortSignal): Promise<Outcome>;
  /** Resolves when it is cancelled on the disk; `ended` for one that had ended before. */
  cancel(id: string, principal: Principal): Promise<TaskView>;
  /** Removes those that ended so long ago, and says how many. */
  prune(olderMs: number): Promise<number>;
  /** Whether this daemon runs a task that the session made. */
  isRunningFor(session: string): boolean;
  /** Counts up with each change; whoever waits is woken. */
  readonly version: number;
  /** Resolves when the version is no longer that one, or after some seconds. */
  changed(since: number): Promise<void>;
};

// ── Views ────────────────────────────────────────────────────────────────────

const LATEST = Number.MAX_SAFE_INTEGER;

export function viewOf(row: TaskRow, pollInterval: number): TaskView {
  const { message } = row;
  const progress = progressOf(row);
  return {
    taskId: row.id,
    status: row.status,
    ...(message !== null && { statusMessage: message }),
    createdAt: isoOf(row.created_at),
    lastUpdatedAt: isoOf(row.updated_at),
    ttl: row.ttl,
    pollInterval,
    server: row.server,
    tool: row.tool,
    principal: row.principal,
    phase: row.phase,
    attempt: row.attempt,
    ...(progress && { progress }),
  };
}

function progressOf({ progress }: TaskRow): TaskView['progress'] {
  const kept = progress === null ? undefined : (jsonOf(progress) as TaskView['progress'] | null);
  return typeof kept?.progress === 'number' ? kept : undefined;
}

export const cursorOf = ({ seq }: TaskRow): string => Buffer.from(`task ${seq}`).toString('base64url');

/** The place in the list that the next page begins after. */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return LATEST;
  const [, seq] = /^task (\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (seq === undefined)
    throw new TroupeError('invalid', 'the cursor is none; leave it out to begin with the first page');
  return Number(seq);
}

/** The same moment is often told twice. */
function isoOf(at: number): string {
  if (at !== last.at) last = { at, text: new Date(Math.min(Math.max(at, -MAX_DATE), MAX_DATE)).toISOString() };
  return last.text;
}

/** No date is farther from 1970 than this, and a damaged row must not cost its owner the whole list. */
const MAX_DATE = 8.64e15;

let last = { at: Number.NaN, text: '' };
