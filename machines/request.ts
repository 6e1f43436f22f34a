// One request in flight to a server, from the moment it is accepted until its caller is answered, exactly once.
// It is never an actor by default: src/calls lowers this chart to a table, because it is on the path of every call.

import { setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export type RequestEvent =
  | { type: 'dispatch' }
  | { type: 'progress' }
  | { type: 'result' }
  | { type: 'error' }
  | { type: 'cancel' }
  | { type: 'deadline' }
  | { type: 'gone' };

/** What a step does to the world. Each way to answer names what is known of the request's fate. */
export type RequestEffect =
  | 'write'
  | 'relay'
  | 'extend'
  | 'cancelUpstream'
  | 'answerResult'
  | 'answerError'
  | 'answerCancelledUnsent'
  | 'answerCancelled'
  | 'answerTimeoutUnsent'
  | 'answerTimeout'
  | 'answerUnsent'
  | 'answerLost';

const effect = () => {};

// ── Setup ────────────────────────────────────────────────────────────────────

const request = setup({
  types: { events: {} as RequestEvent },
  actions: {
    write: effect,
    relay: effect,
    extend: effect,
    cancelUpstream: effect,
    answerResult: effect,
    answerError: effect,
    answerCancelledUnsent: effect,
    answerCancelled: effect,
    answerTimeoutUnsent: effect,
    answerTimeout: effect,
    answerUnsent: effect,
    answerLost: effect,
  } satisfies Record<RequestEffect, () => void>,
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const requestMachine = request.createMachine({
  id: 'request',
  initial: 'queued',
  states: {
    queued: {
      on: {
        dispatch: { target: 'sent', actions: 'write' },
        cancel: { target: 'cancelled', actions: 'answerCancelledUnsent' },
        deadline: { target: 'timedOut', actions: 'answerTimeoutUnsent' },
        gone: { target: 'refused', actions: 'answerUnsent' },
      },
    },
    sent: {
      on: {
        progress: { actions: ['extend', 'relay'] },
        result: { target: 'answered', actions: 'answerResult' },
        error: { target: 'rejected', actions: 'answerError' },
        // The caller is answered at once: a server may take its time to stop, or never say that it did.
        cancel: { target: 'cancelled', actions: ['cancelUpstream', 'answerCancelled'] },
        deadline: { target: 'timedOut', actions: ['cancelUpstream', 'answerTimeout'] },
        gone: { target: 'lost', actions: 'answerLost' },
      },
    },
    answered: { type: 'final' },
    rejected: { type: 'final' },
    cancelled: { type: 'final' },
    timedOut: { type: 'final' },
    refused: { type: 'final' },
    lost: { type: 'final' },
  },
});
