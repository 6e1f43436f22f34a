// A tool that must not run unseen: its call waits until somebody lets it pass. Nothing has been sent to the server yet.

import { ask, BUS, begin, CALLER, ended, HOST, LADDER, STALE } from './ladder.ts';

export const approvalMachine = ask.createMachine({
  id: 'approval',
  context: begin,
  initial: 'open',
  states: {
    open: {
      type: 'parallel',
      states: { ladder: LADDER, host: HOST, bus: BUS, caller: CALLER },
      on: {
        accepted: [STALE, { target: 'approved', actions: 'take' }],
        declined: [STALE, { target: 'denied', actions: 'take' }],
        cancelled: [STALE, { target: 'denied', actions: 'take' }],
        withdrawn: 'withdrawn',
      },
      after: { expiry: 'expired' },
    },
    approved: ended('approved'),
    denied: ended('denied'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
  },
});
