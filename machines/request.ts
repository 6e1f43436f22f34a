// One call to a server, from the moment it arrives until its caller is answered, exactly once: what it waits for (a list that
// says whether it must be approved, an approval, room at the server, a reservation, an address to be visited) is a state.
// It is never an actor by default: src/calls lowers this chart to a table, because it is on the path of every call.

import { setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** What an event brings, such as the bytes of an answer, is left in the request's record by whoever sends the event. */
export type RequestEvent =
  /** Nobody has to be asked about it; nobody knows yet whether somebody has to; somebody has to. */
  | { type: 'clear' }
  | { type: 'defer' }
  | { type: 'ask' }
  | { type: 'approved' }
  | { type: 'denied' }
  /** It is approved while its caller is away; and the caller is back. */
  | { type: 'absent' }
  | { type: 'back' }
  /** Its server takes it now; later; only once it is reserved; or another process of the server shall have it. */
  | { type: 'dispatch' }
  | { type: 'queue' }
  | { type: 'reserve' }
  | { type: 'move' }
  | { type: 'granted' }
  | { type: 'withheld' }
  | { type: 'progress' }
  | { type: 'result' }
  | { type: 'error' }
  /** The server refuses it until an address was visited (-32042), and its caller does not know how to handle that. */
  | { type: 'required' }
  | { type: 'visited' }
  | { type: 'unvisited' }
  /** Nothing of it may be sent: its server, the policy or a person says so. */
  | { type: 'refuse' }
  | { type: 'cancel' }
  /** Its caller has left for good: nobody will read the answer. */
  | { type: 'left' }
  | { type: 'deadline' }
  /** The server went away. */
  | { type: 'gone' };

/**
 * What a step does to the world. Each way to answer names what is known of the request's fate. Those that may lead to the next
 * event at once (`admit`, `reserve`, `askApproval` …) are the last of their step.
 */
export const REQUEST_EFFECTS = [
  'park',
  'unpark',
  'awaitList',
  'askApproval',
  'askVisits',
  'withdraw',
  'pauseDeadline',
  'restartDeadline',
  'admit',
  'readmit',
  'retry',
  'enqueue',
  'enqueueFirst',
  'dequeue',
  'reserve',
  'unreserve',
  'write',
  'writeAgain',
  'release',
  'recordAttempt',
  'relay',
  'extend',
  'cancelUpstream',
  'answerResult',
  'answerError',
  'answerSentBack',
  'answerCancelledUnsent',
  'answerCancelledRejected',
  'answerCancelled',
  'answerTimeoutUnsent',
  'answerTimeout',
  'answerRefused',
  'answerUnsent',
  'answerLost',
] as const;
export type RequestEffect = (typeof REQUEST_EFFECTS)[number];

// ── Setup ────────────────────────────────────────────────────────────────────

const nothing = () => {};

const request = setup({
  types: { events: {} as RequestEvent },
  actions: Object.fromEntries(REQUEST_EFFECTS.map((effect) => [effect, nothing])) as Record<
    RequestEffect,
    typeof nothing
  >,
});

// ── Machine ──────────────────────────────────────────────────────────────────

type Effects = readonly RequestEffect[];

/** The ends of a request that no server has seen; `leave` takes it out of wherever it waits. */
const unsent = (...leave: Effects) =>
  ({
    refuse: { target: 'refused', actions: [...leave, 'answerRefused'] },
    cancel: { target: 'cancelled', actions: [...leave, 'answerCancelledUnsent'] },
    // Nothing is begun for nobody, also when somebody approves it this very moment.
    left: { target: 'cancelled', actions: [...leave, 'answerCancelledUnsent'] },
    deadline: { target: 'timedOut', actions: [...leave, 'answerTimeoutUnsent'] },
    gone: { target: 'refused', actions: [...leave, 'answerUnsent'] },
  }) as const;

/** The ends of a request at its server, which may be working on it. */
const AT_THE_SERVER = {
  progress: { actions: ['extend', 'relay'] },
  result: { target: 'answered', actions: ['release', 'answerResult'] },
  error: { target: 'rejected', actions: ['release', 'answerError'] },
  // The caller is answered at once: a server may take its time to stop, or never say that it did.
  cancel: { target: 'cancelled', actions: ['cancelUpstream', 'release', 'answerCancelled'] },
  deadline: { target: 'timedOut', actions: ['cancelUpstream', 'release', 'answerTimeout'] },
  gone: { target: 'lost', actions: ['release', 'answerLost'] },
} as const;

/** The ends of a request that its server has sent back: unless it is cancelled, its caller gets the server's own error. */
const sentBack = (...leave: Effects) =>
  ({
    cancel: { target: 'cancelled', actions: [...leave, 'answerCancelledRejected'] },
    left: { target: 'cancelled', actions: [...leave, 'answerCancelledRejected'] },
    refuse: { target: 'rejected', actions: [...leave, 'answerSentBack'] },
    deadline: { target: 'rejected', actions: [...leave, 'answerSentBack'] },
    gone: { target: 'rejected', actions: [...leave, 'answerSentBack'] },
  }) as const;

export const requestMachine = request.createMachine({
  id: 'request',
  initial: 'arrived',
  states: {
    arrived: {
      on: {
        clear: { target: 'admitted', actions: 'admit' },
        defer: { target: 'considered', actions: ['park', 'awaitList'] },
        ask: { target: 'approving', actions: ['park', 'pauseDeadline', 'askApproval'] },
        // Requests of our own, such as `initialize`, must not wait for the gate that they open.
        dispatch: { target: 'sent', actions: 'write' },
        ...unsent(),
      },
    },
    considered: {
      on: {
        clear: { target: 'admitted', actions: ['unpark', 'withdraw', 'readmit'] },
        ask: { target: 'approving', actions: ['withdraw', 'pauseDeadline', 'askApproval'] },
        ...unsent('unpark', 'withdraw'),
      },
    },
    approving: {
      on: {
        approved: { target: 'admitted', actions: ['unpark', 'withdraw', 'restartDeadline', 'readmit'] },
        denied: { target: 'refused', actions: ['unpark', 'answerRefused'] },
        absent: { target: 'returning', actions: 'withdraw' },
        ...unsent('unpark', 'withdraw'),
      },
    },
    // It may run, but nobody would hear of it: it runs if its caller comes back.
    returning: {
      on: {
        back: { target: 'admitted', actions: ['unpark', 'restartDeadline', 'readmit'] },
        ...unsent('unpark'),
      },
    },
    admitted: {
      on: {
        queue: { target: 'queued', actions: 'enqueue' },
        reserve: { target: 'reserving', actions: 'reserve' },
        dispatch: { target: 'sent', actions: 'write' },
        ...unsent(),
      },
    },
    queued: {
      on: {
        move: { target: 'admitted', actions: 'dequeue' },
        reserve: { target: 'reserving', actions: ['dequeue', 'reserve'] },
        dispatch: { target: 'sent', actions: ['dequeue', 'write'] },
        ...unsent('dequeue'),
      },
    },
    // What will be done must be on the disk before it is done.
    reserving: {
      on: {
        granted: { target: 'reserved', actions: ['unreserve', 'enqueueFirst'] },
        withheld: { target: 'cancelled', actions: ['unreserve', 'answerCancelledUnsent'] },
        ...unsent('unreserve'),
      },
    },
    reserved: {
      on: {
        move: { target: 'moving', actions: 'dequeue' },
        dispatch: { target: 'sent', actions: ['dequeue', 'write'] },
        ...unsent('dequeue'),
      },
    },
    // Another process of its server gets it, and the reservation stands.
    moving: {
      on: {
        queue: { target: 'reserved', actions: 'enqueue' },
        dispatch: { target: 'sent', actions: 'write' },
        ...unsent(),
      },
    },
    sent: {
      on: {
        ...AT_THE_SERVER,
        left: 'unheard',
        required: { target: 'visiting', actions: ['release', 'recordAttempt', 'park', 'pauseDeadline', 'askVisits'] },
      },
    },
    visiting: {
      on: {
        visited: { target: 'returned', actions: ['unpark', 'restartDeadline', 'retry'] },
        unvisited: { target: 'rejected', actions: ['unpark', 'answerSentBack'] },
        ...sentBack('unpark', 'withdraw'),
      },
    },
    // The one exception to "sent once": the server itself says that it has done nothing, and the specification allows it.
    returned: {
      on: {
        queue: { target: 'requeued', actions: 'enqueue' },
        dispatch: { target: 'resent', actions: 'writeAgain' },
        ...sentBack(),
      },
    },
    requeued: {
      on: {
        move: { target: 'returned', actions: 'dequeue' },
        dispatch: { target: 'resent', actions: ['dequeue', 'writeAgain'] },
        ...sentBack('dequeue'),
      },
    },
    resent: { on: { ...AT_THE_SERVER, left: 'unheard' } },
    // A disconnect is no cancellation: it runs to its end, but nobody is asked anything on its behalf.
    unheard: { on: AT_THE_SERVER },
    answered: { type: 'final' },
    rejected: { type: 'final' },
    cancelled: { type: 'final' },
    timedOut: { type: 'final' },
    refused: { type: 'final' },
    lost: { type: 'final' },
  },
});
