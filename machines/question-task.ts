// A question that its server asked as a task. The server hears of the task only after the row of its question is on the disk;
// if the question has ended before that, the server is told of both, one after the other.

import { assign, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** What the task came to: `answer` is what the plain question would have been answered with. */
export type TaskEnd = {
  readonly how: 'completed' | 'failed' | 'cancelled';
  readonly answer: unknown;
  readonly message?: string | undefined;
  readonly at: number;
};
export type QuestionTaskEvent =
  | { type: 'recorded' }
  /** The row cannot be written, or the server has taken its question back. */
  | { type: 'unrecorded'; end: TaskEnd }
  /** The question has ended. */
  | { type: 'ended'; end: TaskEnd }
  /** By the server, by the end of its connection, or because the time of the task is over. */
  | { type: 'cancelled'; end: TaskEnd };

// ── Setup ────────────────────────────────────────────────────────────────────

const questionTask = setup({
  types: { context: {} as { readonly end: TaskEnd | undefined }, events: {} as QuestionTaskEvent },
  actions: {
    /** Answers the request with the task as it was made. */
    tellCreated: () => {},
    tellStatus: () => {},
    /** Answers the request with an error: there is no task. */
    refuse: () => {},
    /** Whoever waits for the end of the task is told of it. */
    settle: () => {},
    withdrawQuestion: () => {},
    /** The task is not kept any longer. */
    drop: () => {},
    take: assign({ end: ({ event }) => ('end' in event ? event.end : undefined) }),
  },
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const questionTaskMachine = questionTask.createMachine({
  id: 'question-task',
  context: { end: undefined },
  initial: 'recording',
  states: {
    recording: {
      on: {
        recorded: { target: 'working', actions: 'tellCreated' },
        unrecorded: { target: 'refused', actions: ['drop', 'take', 'settle', 'withdrawQuestion'] },
        ended: { target: 'endedEarly', actions: ['take', 'settle'] },
        cancelled: { target: 'refused', actions: ['take', 'settle', 'withdrawQuestion'] },
      },
    },
    working: {
      on: {
        ended: { target: 'ended', actions: ['take', 'settle', 'tellStatus'] },
        cancelled: { target: 'ended', actions: ['take', 'settle', 'tellStatus', 'withdrawQuestion'] },
      },
    },
    endedEarly: {
      on: {
        recorded: { target: 'ended', actions: ['tellCreated', 'tellStatus'] },
        unrecorded: { target: 'refused', actions: 'drop' },
        cancelled: 'refused',
      },
    },
    ended: { type: 'final' },
    refused: { type: 'final', entry: 'refuse' },
  },
});
