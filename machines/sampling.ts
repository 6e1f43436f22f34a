// A server wants a model to speak. If neither the host nor a service on the bus answers, a model of ours may: then a person
// sees the request before it is sent and the answer before it is delivered, unless the server is trusted.

import { ask, BUS, begin, CALLER, ended, HOST, LADDER, STALE, waitFor } from './ladder.ts';

const keepResult = {
  type: 'keepResult',
  params: ({ event }: { event: { output: Uint8Array } }) => event.output,
} as const;
const reportModel = {
  type: 'reportModel',
  params: ({ event }: { event: { error: unknown } }) => event.error,
} as const;

/** A person is waited for when the first review begins, or when the model of a trusted server fails. */
const SAMPLING_LADDER = ask.createStateConfig({
  initial: 'opening',
  states: {
    ...LADDER.states,
    rule: {
      entry: LADDER.states.rule.entry,
      on: {
        'rule.passed': [
          { guard: 'isTrustedWithModel', target: 'generating', actions: [waitFor('model', 'answer'), 'show'] },
          { guard: 'hasModel', target: 'reviewing', actions: 'tellCaller' },
          { target: 'inbox', actions: 'tellCaller' },
        ],
      },
    },
    reviewing: {
      entry: [waitFor('inbox', 'request'), 'show'],
      on: {
        accepted: {
          guard: 'approvesRequest',
          target: 'generating',
          actions: ['edit', waitFor('model', 'answer'), 'reopen'],
        },
      },
    },
    generating: {
      invoke: {
        id: 'model',
        src: 'model',
        input: ({ self, context }) => ({ ask: self, request: context.request }),
        onDone: [
          { guard: 'isTrusted', target: 'delivering', actions: keepResult },
          { target: 'checking', actions: keepResult },
        ],
        onError: { target: 'inbox', actions: [reportModel, 'tellCaller'] },
      },
    },
    checking: { entry: [waitFor('inbox', 'result'), 'show'] },
    delivering: { entry: 'deliver', on: { 'model.unfit': { target: 'inbox', actions: 'tellCaller' } } },
  },
});

export const samplingMachine = ask.createMachine({
  id: 'sampling',
  context: begin,
  initial: 'open',
  states: {
    open: {
      type: 'parallel',
      states: { ladder: SAMPLING_LADDER, host: HOST, bus: BUS, caller: CALLER },
      on: {
        accepted: [STALE, { target: 'answered', actions: 'take' }],
        declined: [STALE, { target: 'rejected', actions: 'take' }],
        cancelled: [STALE, { target: 'rejected', actions: 'take' }],
        withdrawn: 'withdrawn',
      },
      after: { expiry: 'expired' },
    },
    answered: ended('answered'),
    rejected: ended('rejected'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
  },
});
