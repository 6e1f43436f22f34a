// Tasks over the control socket: what the owner orders is the owner's own. A result leaves as the bytes that were kept, and a
// failure as the one that the call would have met.

import { failing } from '../protocol/failures.ts';
import { member, spansOf, stringOf } from '../protocol/json.ts';
import type { Order, Tasks } from '../tasks/task.ts';
import { type Caller, type Given, invalid, numberOf, OWNER, textOf } from './parameters.ts';

const LONGEST_KEY = 256;
const OPEN_BRACE = 0x7b;

export function orderOf({ bytes, fields }: Given): Order {
  const { server, tool, ttlMs, key } = fields;
  const params = member(bytes, 'params');
  const name = textOf(tool, 'tool');
  if (params?.[0] !== OPEN_BRACE) throw invalid('params must be the params of tools/call, an object');
  // What is audited and allowed is what is sent.
  if (stringOf(member(params, 'name') ?? Buffer.alloc(0)) !== name) throw invalid('params.name must be the tool');
  if (spansOf(params, 'task').length > 0) throw invalid('params must not have a task; ttlMs says how long it may live');
  return {
    principal: OWNER,
    door: 'control',
    server: textOf(server, 'server'),
    tool: name,
    params,
    ...(ttlMs !== undefined && { ttlMs: ttlOf(ttlMs) }),
    ...(key !== undefined && { key: keyOf(key) }),
  };
}

type Page = { readonly since?: number; readonly cursor?: string };

export const tasksFrom = ({ fields: { since, cursor } }: Given): Page => ({
  ...(since !== undefined && { since: numberOf(since, 'since') }),
  ...(cursor !== undefined && { cursor: textOf(cursor, 'cursor') }),
});

/** Newest first. With `since`, which is a version of the list, it waits until a task has changed, or for some seconds. */
export async function listTasks(
  { tasks }: { readonly tasks: Pick<Tasks, 'list' | 'version' | 'changed'> },
  { since, cursor }: Page,
  { principal }: Caller,
) {
  if (since !== undefined) await tasks.changed(since);
  return { version: tasks.version, ...tasks.list(principal, cursor) };
}

/** Waits until the task has ended, or the caller has left. */
export async function resultOf(
  { tasks }: { readonly tasks: Pick<Tasks, 'outcome'> },
  { id }: { readonly id: string },
  { principal, signal }: Caller,
): Promise<Buffer> {
  const outcome = await tasks.outcome(id, principal, signal);
  if (!outcome.ok) throw failing(outcome.failure);
  return outcome.result;
}

function ttlOf(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw invalid('ttlMs must be a whole number of milliseconds, at least 1');
}

function keyOf(value: unknown): string {
  const key = textOf(value, 'key');
  if (key.length <= LONGEST_KEY) return key;
  throw invalid(`key must have at most ${LONGEST_KEY} characters`);
}
