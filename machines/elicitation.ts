// A server wants to know something of the person behind a call: a form to fill in, or an address to visit. It is answered
// once; an address that was agreed to stays open until what happens there is done.

import { ask, BUS, begin, CALLER, ended, HOST, LADDER, STALE, TOLD, waitFor } from './ladder.ts';

export const elicitationMachine = ask.createMachine({
  id: 'elicitation',
  context: begin,
  initial: 'open',
  states: {
    open: {
      initial: 'asking',
      on: {
        declined: [STALE, { target: 'declined', actions: 'take' }],
        cancelled: [STALE, { target: 'cancelled', actions: 'take' }],
        completed: {
          target: 'completed',
          actions: { type: 'tellHostDone', params: ({ event }) => event.params },
        },
        withdrawn: 'withdrawn',
      },
      after: { expiry: [{ guard: 'isSettled', target: 'visited' }, { target: 'expired' }] },
      states: {
        asking: {
          type: 'parallel',
          states: { ladder: LADDER, host: HOST, bus: BUS, caller: CALLER },
          on: {
            accepted: [
              STALE,
              { guard: 'isRequired', target: 'consented', actions: 'take' },
              { guard: 'isUrl', target: 'visiting', actions: 'take' },
              { target: '#elicitation.accepted', actions: 'take' },
            ],
          },
        },
        // The call waits until somebody says that all is done at the address.
        consented: {
          entry: [waitFor('inbox', 'done'), 'reopen'],
          initial: 'told',
          states: { told: TOLD },
          on: { accepted: [STALE, { target: '#elicitation.completed', actions: 'take' }] },
        },
        // The server has its answer, and may still say that all is done at the address.
        visiting: {
          entry: [waitFor('inbox'), 'consent'],
          on: {
            completed: {
              target: '#elicitation.visited',
              actions: { type: 'tellHostDone', params: ({ event }) => event.params },
            },
            withdrawn: '#elicitation.visited',
          },
        },
      },
    },
    accepted: ended('accepted'),
    declined: ended('declined'),
    cancelled: ended('cancelled'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
    completed: ended('completed'),
    visited: { type: 'final', entry: 'forget' },
  },
});
