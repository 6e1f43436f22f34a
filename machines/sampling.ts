// A server wants a model to speak. If neither the host nor a service on the bus answers, a model of ours may: then a person
// sees the request before it is sent and the answer before it is delivered, unless the server is trusted.

import { setup } from 'xstate';
import { type AskSpec, LADDER, type LadderEvent } from './ladder.ts';

// ── Types ────────────────────────────────────────────────────────────────────

/** `hasModel`: there is one of ours to ask. */
export type SamplingSpec = AskSpec & { readonly isTrusted: boolean; readonly hasModel: boolean };
export type SamplingEvent =
  | LadderEvent
  /** Somebody has given the whole answer. */
  | { type: 'answered' }
  | { type: 'rejected' }
  /** The reviewer lets it pass, perhaps edited. */
  | { type: 'approved' }
  | { type: 'generated' }
  | { type: 'failed' };
export type SamplingOutcome = 'answered' | 'rejected' | 'expired' | 'withdrawn';

// ── Setup ────────────────────────────────────────────────────────────────────

const sampling = setup({
  types: {
    context: {} as { spec: SamplingSpec },
    input: {} as SamplingSpec,
    events: {} as SamplingEvent,
  },
  actions: {
    askHost: () => {},
    askBus: () => {},
    applyRule: () => {},
    generate: () => {},
    stopGenerating: () => {},
    conclude: (_, _outcome: SamplingOutcome) => {},
  },
  guards: {
    isTrusted: ({ context }) => context.spec.isTrusted,
    hasModel: ({ context }) => context.spec.hasModel,
  },
  delays: { patience: ({ context }) => context.spec.patienceMs, expiry: ({ context }) => context.spec.expiryMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

const ended = (params: SamplingOutcome) => ({ type: 'final', entry: { type: 'conclude', params } }) as const;

export const samplingMachine = sampling.createMachine({
  id: 'sampling',
  context: ({ input }) => ({ spec: input }),
  initial: 'open',
  states: {
    open: {
      initial: 'opening',
      on: { answered: 'answered', rejected: 'rejected', withdrawn: 'withdrawn' },
      after: { expiry: 'expired' },
      states: {
        ...LADDER,
        rule: {
          entry: 'applyRule',
          on: { 'rule.passed': [{ guard: 'hasModel', target: 'reviewing' }, { target: 'inbox' }] },
        },
        reviewing: {
          always: { guard: 'isTrusted', target: 'generating' },
          on: { approved: 'generating' },
        },
        generating: {
          entry: 'generate',
          exit: 'stopGenerating',
          on: { generated: 'checking', failed: 'inbox' },
        },
        // What a trusted server's model says is its answer; nothing is left to check.
        checking: { on: { approved: '#sampling.answered' } },
      },
    },
    answered: ended('answered'),
    rejected: ended('rejected'),
    expired: ended('expired'),
    withdrawn: ended('withdrawn'),
  },
});
