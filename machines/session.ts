// A host's session in this daemon: it exists once its row is on the disk, is open while somebody is there and detached while
// nobody is. One that rests leaves the memory, not the disk; it is closed when it has ended, here or elsewhere.

import { assign, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** How long a session that nobody uses stays in memory: `restMs`, or `idleMs` where something depends on it. */
export type SessionSpec = { readonly restMs: number; readonly idleMs: number };
export type SessionEvent =
  | { type: 'committed' }
  | { type: 'refused' }
  | { type: 'came' }
  | { type: 'left'; mustStay: boolean }
  | { type: 'ended' };

type Context = { spec: SessionSpec; mustStay: boolean };

// ── Setup ────────────────────────────────────────────────────────────────────

const session = setup({
  types: { context: {} as Context, input: {} as SessionSpec, events: {} as SessionEvent },
  actions: { remember: assign({ mustStay: (_, must: boolean) => must }) },
  // One that listens to something, or has a process of its own, stays in memory for as long as it exists.
  guards: { mayRest: ({ context }) => !context.mustStay },
  delays: { rest: ({ context }) => context.spec.restMs, idle: ({ context }) => context.spec.idleMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const sessionMachine = session.createMachine({
  id: 'session',
  context: ({ input }) => ({ spec: input, mustStay: false }),
  initial: 'opening',
  states: {
    opening: { on: { committed: 'open', refused: 'closed', ended: 'closed' } },
    open: {
      on: {
        left: {
          target: 'detached',
          actions: { type: 'remember', params: ({ event }) => event.mustStay },
        },
        ended: 'closed',
      },
    },
    detached: {
      on: { came: 'open', ended: 'closed' },
      // Whether it is over is for its row to say: another daemon may be serving it.
      after: { rest: { guard: 'mayRest', target: 'released' }, idle: 'released' },
    },
    released: { type: 'final' },
    closed: { type: 'final' },
  },
});
