// A task as MCP 2025-11-25 draws it: it works, may wait for input, and ends once. What has ended never changes again; how a
// task is dispatched, and by which daemon, is no part of it.

import { setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
/** How it ended; the other two can still change. */
export type TaskEnding = Exclude<TaskStatus, 'working' | 'input_required'>;
export type TaskEvent =
  | { type: 'input.required' }
  | { type: 'input.given' }
  | { type: 'completed' }
  | { type: 'failed' }
  | { type: 'cancelled' };

// ── Setup ────────────────────────────────────────────────────────────────────

const task = setup({
  types: { context: {} as { status: 'working' | 'input_required' }, events: {} as TaskEvent, input: {} as Input },
  actions: { show: (_, _status: TaskStatus) => {} },
  guards: { wantsInput: ({ context }) => context.status === 'input_required' },
});
/** What its row says: one that is rebuilt goes on where it was. */
type Input = { readonly status: 'working' | 'input_required' };

// ── Machine ──────────────────────────────────────────────────────────────────

const shown = (params: TaskStatus) => ({ type: 'show', params }) as const;
const ended = (params: TaskEnding) => ({ type: 'final', entry: shown(params) }) as const;
const ENDINGS = { completed: 'completed', failed: 'failed', cancelled: 'cancelled' } as const;

export const taskMachine = task.createMachine({
  id: 'task',
  context: ({ input }) => ({ status: input.status }),
  initial: 'resuming',
  states: {
    resuming: { always: [{ guard: 'wantsInput', target: 'input_required' }, { target: 'working' }] },
    working: { entry: shown('working'), on: { ...ENDINGS, 'input.required': 'input_required' } },
    input_required: { entry: shown('input_required'), on: { ...ENDINGS, 'input.given': 'working' } },
    completed: ended('completed'),
    failed: ended('failed'),
    cancelled: ended('cancelled'),
  },
});
