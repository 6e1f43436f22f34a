// A tool that must not run unseen: its call waits until somebody lets it pass. Nothing has been sent to the server yet.

import { setup } from 'xstate';
import { type AskSpec, LADDER, type LadderEvent } from './ladder.ts';

// ── Types ────────────────────────────────────────────────────────────────────

export type ApprovalEvent = LadderEvent | { type: 'accepted' } | { type: 'declined' } | { type: 'cancelled' };
export type ApprovalOutcome = 'approved' | 'denied' | 'expired' | 'withdrawn';

// ── Setup ────────────────────────────────────────────────────────────────────

const approval = setup({
  types: { context: {} as { spec: AskSpec }, input: {} as AskSpec, events: {} as ApprovalEvent },
  actions: {
    askHost: () => {},
    askBus: () => {},
    applyRule: () => {},
    conclude: (_, _outcome: ApprovalOutcome) => {},
  },
  delays: { patience: ({ context }) => context.spec.patienceMs, expiry: ({ context }) => context.spec.expiryMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

const ended = (params: ApprovalOutcome) => ({ type: 'final', entry: { type: 'conclude', params } }) as const;

export const approvalMachine = approval.createMachine({
  id: 'approval',
  context: ({ input }) => ({ spec: input }),
  initial: 'open',
  states: {
    open: {
      initial: 'opening',
      on: { accepted: 'approved', declined: 'denied', cancelled: 'denied', withdrawn: 'withdrawn' },
      after: { expiry: 'expired' },
      states: LADDER,
    },
    approved: ended('approved'),
    denied: ended('denied'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
  },
});
