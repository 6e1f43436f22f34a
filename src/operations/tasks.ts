// What the command line asks of tasks. It speaks for the owner of this machine, who sees and ends everybody's; what it makes is
// the owner's own. A result leaves as the bytes that were kept, and a failure as the one that the call would have met.

import { TroupeError } from '../protocol/failures.ts';
import { member, spansOf, stringOf } from '../protocol/json.ts';
import type { Order, Tasks } from '../tasks/task.ts';
import { failing, type Handlers } from './operation.ts';

type Params = Record<string, unknown>;

const OWNER = '_';
const LONGEST_KEY = 256;
const OPEN_BRACE = 0x7b;

export const taskMethods = (tasks: Tasks): Handlers => ({
  taskCreate: (params, bytes) => tasks.create(orderOf(params, bytes)),
  /** Newest first. With `since` it waits until something is another than then, or for some seconds. */
  tasks: async ({ since, cursor }) => {
    if (since !== undefined) await tasks.changed(numberOf(since, 'since'));
    const version = tasks.version;
    return { version, ...tasks.list(undefined, cursor === undefined ? undefined : textOf(cursor, 'cursor')) };
  },
  taskGet: ({ id }) => tasks.get(textOf(id, 'id'), undefined),
  /** Waits for it, as long as somebody is there to hear it. */
  taskResult: async ({ id }, _, signal) => {
    const outcome = await tasks.outcome(textOf(id, 'id'), undefined, signal);
    if (!outcome.ok) throw failing(outcome.failure);
    return outcome.result;
  },
  taskCancel: ({ id }) => tasks.cancel(textOf(id, 'id'), undefined),
  tasksPrune: async ({ olderMs = 0 }) => ({ removed: await tasks.prune(numberOf(olderMs, 'olderMs')) }),
});

function orderOf({ server, tool, ttlMs, key }: Params, bytes: Buffer): Order {
  const params = member(bytes, 'params');
  const name = textOf(tool, 'tool');
  if (params?.[0] !== OPEN_BRACE) throw invalid('params must be the params of tools/call, an object');
  // What is audited and allowed is what is sent.
  if (stringOf(member(params, 'name') ?? Buffer.alloc(0)) !== name) throw invalid('params.name must be the tool');
  if (spansOf(params, 'task').length > 0) throw invalid('params must not have a task; ttlMs says how long it may live');
  return {
    ...{ principal: OWNER, door: 'control', server: textOf(server, 'server'), tool: name, params },
    ...(ttlMs !== undefined && { ttlMs: ttlOf(ttlMs) }),
    ...(key !== undefined && { key: keyOf(key) }),
  };
}

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(`${name} must be a string that is not empty`);
}

function numberOf(value: unknown, name: string): number {
  if (typeof value === 'number' && value >= 0) return value;
  throw invalid(`${name} must be a number, at least 0`);
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

const invalid = (message: string): TroupeError => new TroupeError('invalid', message);
