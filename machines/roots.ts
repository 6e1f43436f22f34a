// What one server's connection is told of roots: that the list is another, not what is in it. Changes that come together are
// told together, unless somebody is in a hurry; a server that has asked in the meantime has the new list and is told nothing.
// A server that has asked before is expected to ask again once it is told, for a while.

import { assign, fromPromise, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export type RootsSpec = {
  /** How long further changes are waited for before the server is told of the first. */
  readonly gatherMs: number;
  /** How long a server that was told may take to ask. */
  readonly askMs: number;
};
export type RootsEvent =
  /** The list is not the one that the server was last told of or given. */
  | { type: 'changed' }
  /** The server has been given the list as it is now. */
  | { type: 'asked' }
  /** Somebody waits until the server knows the list. */
  | { type: 'hurry' }
  | { type: 'connection.closed' };

/** `isCurious`: it has asked at least once. `isExpected`: it has not asked since it was told. */
type Context = { spec: RootsSpec; isStale: boolean; isCurious: boolean; isExpected: boolean };

// ── Setup ────────────────────────────────────────────────────────────────────

const roots = setup({
  types: { context: {} as Context, input: {} as RootsSpec, events: {} as RootsEvent },
  actors: {
    tell: fromPromise<void>(() => {
      throw new Error('the port tell is not provided');
    }),
  },
  actions: {
    stale: assign({ isStale: true }),
    expect: assign({ isStale: false, isExpected: ({ context }) => context.isCurious }),
    informed: assign({ isStale: false, isCurious: true, isExpected: false }),
  },
  guards: { isStale: ({ context }) => context.isStale, isExpected: ({ context }) => context.isExpected },
  delays: { gather: ({ context }) => context.spec.gatherMs, ask: ({ context }) => context.spec.askMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

const again = { guard: 'isStale', target: 'gathering' } as const;

export const rootsMachine = roots.createMachine({
  id: 'roots',
  context: ({ input }) => ({ spec: input, isStale: false, isCurious: false, isExpected: false }),
  initial: 'quiet',
  on: { 'connection.closed': '.ended' },
  states: {
    quiet: { on: { changed: 'gathering', asked: { actions: 'informed' } } },
    gathering: {
      on: { asked: { target: 'quiet', actions: 'informed' }, hurry: 'telling' },
      after: { gather: 'telling' },
    },
    telling: {
      entry: 'expect',
      invoke: {
        src: 'tell',
        onDone: [again, { guard: 'isExpected', target: 'told' }, { target: 'quiet' }],
        // A server that could not be told has no connection any more.
        onError: [again, { target: 'quiet' }],
      },
      on: { changed: { actions: 'stale' }, asked: { actions: 'informed' } },
    },
    told: { on: { changed: 'gathering', asked: { target: 'quiet', actions: 'informed' } }, after: { ask: 'quiet' } },
    ended: { type: 'final' },
  },
});
