// Tasks as MCP 2025-11-25 writes them: the task itself, the `task` member of the params of a call that shall be one, and
// the keys of `_meta` that belong to tasks.

import type { TaskStatus } from '../../machines/task.ts';
import { withoutMember } from './edit.ts';
import { TroupeError } from './failures.ts';
import { mayHave, member, spansOf } from './json.ts';
import { OPEN_BRACE } from './scan.ts';

export type { TaskStatus } from '../../machines/task.ts';

/** A task as MCP 2025-11-25 writes it. */
export type Task = {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Milliseconds from its creation until it may be forgotten. */
  readonly ttl: number;
  readonly pollInterval: number;
};

/** Where messages that belong to a task name it, in `_meta`. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';
/** What the model is told in place of a result, in `_meta` of a CreateTaskResult. */
export const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response';
/** How an MCP host gives an idempotency key, in `_meta` of its request. */
export const IDEMPOTENCY_KEY = 'troupe/idempotency-key';

/** The members that MCP has, of a view that may have more. */
export function taskOf(view: Task): Task {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttl, pollInterval } = view;
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttl,
    pollInterval,
  };
}

export const isEnded = (status: TaskStatus): boolean => status !== 'working' && status !== 'input_required';

const TASK = Buffer.from('"task"');
const NUMBER_BYTES = 40;

/** Whether params want their call run as a task. */
export const isAugmented = (params: Buffer): boolean => mayHave(params, TASK) && spansOf(params, 'task').length > 0;

/** For a version without tasks, or a server that shall not see that one is wanted. */
export const withoutTask = (params: Buffer): Buffer => (mayHave(params, TASK) ? withoutMember(params, 'task') : params);

/** The `ttl` that the params of a task ask for, in whole milliseconds. */
export function requestedTtl(params: Buffer): number | undefined {
  const task = member(params, 'task');
  if (task?.[0] !== OPEN_BRACE) throw new TroupeError('invalid', 'task must be one object, such as {"ttl": 60000}');
  const [span, another] = spansOf(task, 'ttl');
  if (!span) return undefined;
  const text = another ? '' : task.toString('latin1', span.from, Math.min(span.to, span.from + NUMBER_BYTES));
  const ttl = /^[\d.eE+-]+$/.test(text) ? Number(text) : Number.NaN;
  if (!(ttl >= 0)) throw new TroupeError('invalid', 'task.ttl must be a number of milliseconds, and not negative');
  return Math.min(Math.ceil(ttl), Number.MAX_SAFE_INTEGER);
}
