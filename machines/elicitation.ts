// A server wants to know something of the person behind a call: a form to fill in, or an address to visit. It is answered
// once; an address that was agreed to stays open until what happens there is done.

import { setup } from 'xstate';
import { type AskSpec, LADDER, type LadderEvent } from './ladder.ts';

// ── Types ────────────────────────────────────────────────────────────────────

export type ElicitationSpec = AskSpec & { readonly mode: 'form' | 'url' };
export type ElicitationEvent =
  | LadderEvent
  | { type: 'accepted' }
  | { type: 'declined' }
  | { type: 'cancelled' }
  /** What happens at the address is done: the server says so, or the person does. */
  | { type: 'completed' };
export type ElicitationOutcome = 'accepted' | 'declined' | 'cancelled' | 'expired' | 'withdrawn' | 'completed';

// ── Setup ────────────────────────────────────────────────────────────────────

const elicitation = setup({
  types: {
    context: {} as { spec: ElicitationSpec },
    input: {} as ElicitationSpec,
    events: {} as ElicitationEvent,
  },
  actions: {
    askHost: () => {},
    askBus: () => {},
    applyRule: () => {},
    consent: () => {},
    conclude: (_, _outcome: ElicitationOutcome) => {},
  },
  guards: { isUrl: ({ context }) => context.spec.mode === 'url' },
  delays: { patience: ({ context }) => context.spec.patienceMs, expiry: ({ context }) => context.spec.expiryMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

const ended = (params: ElicitationOutcome) => ({ type: 'final', entry: { type: 'conclude', params } }) as const;

export const elicitationMachine = elicitation.createMachine({
  id: 'elicitation',
  context: ({ input }) => ({ spec: input }),
  initial: 'open',
  states: {
    open: {
      initial: 'opening',
      on: {
        accepted: [{ guard: 'isUrl', target: '.consented' }, { target: 'accepted' }],
        declined: 'declined',
        cancelled: 'cancelled',
        completed: 'completed',
        withdrawn: 'withdrawn',
      },
      after: { expiry: 'expired' },
      // Who has agreed cannot agree again.
      states: { ...LADDER, consented: { entry: 'consent', on: { accepted: {} } } },
    },
    accepted: ended('accepted'),
    declined: ended('declined'),
    cancelled: ended('cancelled'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
    completed: ended('completed'),
  },
});
