// What a server reports of a task of its own, read with care: a task without a usable id or a known status does not count,
// its message is cut and made printable, and how often it wants to be polled is kept within reason.

import { TASK_STATUSES } from '../../../machines/task.ts';
import type { UpstreamTask } from '../../calls/call.ts';
import { withMeta, withoutMeta } from '../../protocol/edit.ts';
import { member, textAt } from '../../protocol/json.ts';
import { RELATED_TASK } from '../../protocol/tasks.ts';
import { withoutControls } from '../../telemetry/printable.ts';

export type TaskReport = UpstreamTask & { readonly pollMs?: number };

const MAX_ID_CHARACTERS = 1_024;
const MAX_MESSAGE_CHARACTERS = 1_024;
const SHORTEST_POLL_MS = 100;
const LONGEST_POLL_MS = 60_000;

export function readTask(json: Buffer): TaskReport | undefined {
  const taskId = idAt(json, ['taskId']);
  const said = textAt(json, ['status']);
  const status = TASK_STATUSES.find((each) => each === said);
  if (taskId === undefined || !status) return undefined;
  const message = textAt(json, ['statusMessage']);
  const interval = Number(member(json, 'pollInterval') ?? Number.NaN);
  return {
    taskId,
    status,
    ...(message !== undefined && { statusMessage: withoutControls(message.slice(0, MAX_MESSAGE_CHARACTERS)) }),
    ...(interval >= 0 && { pollMs: Math.min(Math.max(interval, SHORTEST_POLL_MS), LONGEST_POLL_MS) }),
  };
}

/** The task that the server made of a call, if the result is not the call's own; `unusable` when it could not be asked for. */
export function taskCreatedIn(result: Buffer): TaskReport | 'unusable' | undefined {
  const task = member(result, 'task');
  if (!task || member(result, 'content')) return undefined;
  return readTask(task) ?? 'unusable';
}

/** The task that a request or a notification says it belongs to. */
export function relatedTask(params: Buffer): string | undefined {
  return params.includes(RELATED_TASK) ? idAt(params, ['_meta', RELATED_TASK, 'taskId']) : undefined;
}

/** The id of a server's task means nothing to the hosts and callers behind us. */
export const withoutRelated = (json: Buffer): Buffer =>
  json.includes(RELATED_TASK) ? withoutMeta(json, RELATED_TASK) : json;

/** A server that asks in the name of a task wants the task's id back with the answer. */
export const withRelated = (result: Buffer, taskId: string | undefined): Buffer =>
  taskId === undefined ? result : withMeta(result, RELATED_TASK, JSON.stringify({ taskId }));

function idAt(json: Buffer, path: readonly string[]): string | undefined {
  const id = textAt(json, path);
  return id !== undefined && id.length > 0 && id.length <= MAX_ID_CHARACTERS ? id : undefined;
}
