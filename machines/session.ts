// A host's session: it exists once its row is on the disk, is open while somebody is there, detached while nobody is, and
// closed when the host is done with it or has been away for too long. One that merely rests leaves the memory, not the disk.

import { assign, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** `restMs`: how long a session that nobody uses stays in memory. `idleMs`: how long it exists at all. */
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
      after: { rest: { guard: 'mayRest', target: 'released' }, idle: 'closed' },
    },
    released: { type: 'final' },
    closed: { type: 'final' },
  },
});
