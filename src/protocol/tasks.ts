// Tasks as MCP 2025-11-25 writes them, and the keys of `_meta` that belong to them.

import type { TaskStatus } from '../../machines/task.ts';

export type { TaskStatus } from '../../machines/task.ts';

/** A task as MCP 2025-11-25 writes it. */
export type Task = {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Milliseconds from its creation. */
  readonly ttl: number;
  readonly pollInterval: number;
};

/** Where the id of a task stands in `_meta` of whatever belongs to it. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';
/** What the model is told at once, in `_meta` of a CreateTaskResult. */
export const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response';
/** How an MCP host gives an idempotency key, in `_meta` of its request. */
export const IDEMPOTENCY_KEY = 'troupe/idempotency-key';

/** What MCP knows of it. */
export function taskOf(view: Task): Task {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttl, pollInterval } = view;
  return {
    ...{ taskId, status, ...(statusMessage !== undefined && { statusMessage }) },
    ...{ createdAt, lastUpdatedAt, ttl, pollInterval },
  };
}

export const isEnded = (status: TaskStatus): boolean => status !== 'working' && status !== 'input_required';
