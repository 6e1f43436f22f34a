// What one server's connection is told of roots: that the list is another, not what is in it. Changes that come together are
// told together; a server that has asked in the meantime has the new list and is told nothing.

import { assign, fromPromise, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** How long further changes are waited for before the server is told of the first. */
export type RootsSpec = { readonly gatherMs: number };
export type RootsEvent =
  /** The list is not the one that the server was last told of or given. */
  | { type: 'changed' }
  /** The server has been given the list as it is now. */
  | { type: 'asked' }
  | { type: 'connection.closed' };

type Context = { spec: RootsSpec; isStale: boolean };

// ── Setup ────────────────────────────────────────────────────────────────────

const roots = setup({
  types: { context: {} as Context, input: {} as RootsSpec, events: {} as RootsEvent },
  actors: {
    tell: fromPromise<void>(() => {
      throw new Error('the port tell is not provided');
    }),
  },
  actions: { stale: assign({ isStale: true }), fresh: assign({ isStale: false }) },
  guards: { isStale: ({ context }) => context.isStale },
  delays: { gather: ({ context }) => context.spec.gatherMs },
});

// ── Machine ──────────────────────────────────────────────────────────────────

const told = [{ guard: 'isStale', target: 'gathering' }, { target: 'quiet' }] as const;

export const rootsMachine = roots.createMachine({
  id: 'roots',
  context: ({ input }) => ({ spec: input, isStale: false }),
  initial: 'quiet',
  on: { 'connection.closed': '.ended' },
  states: {
    quiet: { on: { changed: 'gathering' } },
    gathering: { on: { asked: 'quiet' }, after: { gather: 'telling' } },
    telling: {
      entry: 'fresh',
      // A server that could not be told has no connection any more.
      invoke: { src: 'tell', onDone: told, onError: told },
      on: { changed: { actions: 'stale' }, asked: { actions: 'fresh' } },
    },
    ended: { type: 'final' },
  },
});
