// A row as it is shown, and a place in a list of them.

import type { TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { TaskRow } from '../store/rows.ts';

export const LATEST = Number.MAX_SAFE_INTEGER;

export function viewOf(row: TaskRow, pollInterval: number): TaskView {
  const { message, progress } = row;
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
    ...(progress !== null && { progress: JSON.parse(progress) }),
  };
}

export const cursorOf = ({ seq }: TaskRow): string => Buffer.from(`task ${seq}`).toString('base64url');

/** What comes after that place. */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return LATEST;
  const [, seq] = /^task (\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (seq === undefined)
    throw new TroupeError('invalid', 'the cursor is none; leave it out to begin with the first page');
  return Number(seq);
}

/** The same moment is often told twice. */
function isoOf(at: number): string {
  if (at !== last.at) last = { at, text: new Date(at).toISOString() };
  return last.text;
}

let last = { at: Number.NaN, text: '' };
