// The daemon's connection to NATS. It is never given up: the client reconnects for ever by itself, and when it closes, or NATS
// moves to another address, a new connection is made. Offline is a state that people see, not an error.

import type { ErrorActorEvent } from 'xstate';
import { assign, fromCallback, sendTo, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export type BusSpec = { readonly retryMs: number; readonly drainMs: number };
export type BusEvent =
  | { type: 'address'; url: string }
  | { type: 'close' }
  | { type: 'connection.up' }
  | { type: 'connection.down'; why: string }
  | { type: 'connection.closed'; why: string };
export type ToBusConnection = { type: 'drain' };

type ConnectionCrashed = ErrorActorEvent<unknown, 'connection'>;
type Context = { spec: BusSpec; url: string; why: string };

const notProvided = () => {
  throw new Error('bus: the connection was not provided');
};

// ── Setup ────────────────────────────────────────────────────────────────────

const bus = setup({
  types: { context: {} as Context, input: {} as BusSpec, events: {} as BusEvent | ConnectionCrashed },
  actors: { connection: fromCallback<ToBusConnection, { url: string }>(notProvided) },
  actions: {
    remember: assign({ url: (_, url: string) => url }),
    blame: assign({ why: (_, why: string) => why }),
    drain: sendTo('connection', { type: 'drain' }),
  },
  guards: {
    isNews: ({ context }, url: string) => context.url !== url,
  },
  delays: {
    retry: ({ context }) => context.spec.retryMs,
    drain: ({ context }) => context.spec.drainMs,
  },
});

const blame = { type: 'blame', params: ({ event }: { event: { why: string } }) => event.why } as const;

// ── Machine ──────────────────────────────────────────────────────────────────

export const busMachine = bus.createMachine({
  id: 'bus',
  context: ({ input }) => ({ spec: input, url: '', why: '' }),
  initial: 'unaddressed',
  states: {
    unaddressed: {
      on: {
        address: { target: 'linked', actions: { type: 'remember', params: ({ event }) => event.url } },
        close: 'closed',
      },
    },
    linked: {
      invoke: {
        id: 'connection',
        src: 'connection',
        input: ({ context }) => ({ url: context.url }),
        onError: { target: 'parted', actions: { type: 'blame', params: ({ event }) => String(event.error) } },
      },
      initial: 'connecting',
      on: {
        address: {
          guard: { type: 'isNews', params: ({ event }) => event.url },
          target: 'linked',
          reenter: true,
          actions: { type: 'remember', params: ({ event }) => event.url },
        },
        'connection.up': '.online',
        'connection.down': { target: '.offline', actions: blame },
        'connection.closed': { target: 'parted', actions: blame },
        close: '.draining',
      },
      states: {
        connecting: {},
        online: { entry: { type: 'blame', params: '' } },
        offline: {},
        // Replies to calls in flight still go out; no new call comes in.
        draining: {
          on: {
            address: {},
            'connection.up': {},
            'connection.down': '#bus.closed',
            'connection.closed': '#bus.closed',
            'xstate.error.actor.connection': '#bus.closed',
            close: {},
          },
          after: { drain: '#bus.closed' },
          entry: 'drain',
        },
      },
    },
    parted: {
      after: { retry: 'linked' },
      on: {
        address: { target: 'linked', actions: { type: 'remember', params: ({ event }) => event.url } },
        close: 'closed',
      },
    },
    closed: { type: 'final' },
  },
});
