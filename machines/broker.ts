// The NATS server that the daemon uses: an external one, or a managed one on loopback. The managed one is restarted for ever;
// when no binary can be had, that is said and tried again later, because the rest of troupe works without a bus.

import type { ErrorActorEvent } from 'xstate';
import { assign, fromCallback, fromPromise, sendTo, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** `binary` is the nats-server to run; without one the bus is external, and the connection is given its address. */
export type Located = { readonly binary: string | undefined };
export type BrokerSpec = {
  readonly backoffMs: readonly number[];
  readonly retryMs: number;
  readonly closeMs: number;
  /** How long the process must have run before earlier crashes are forgotten. */
  readonly settleMs: number;
};
export type BrokerEvent =
  | { type: 'start' }
  | { type: 'stop' }
  | { type: 'process.ready' }
  | { type: 'process.exited'; why: string };
export type ToProcess = { type: 'stop' };

type ProcessCrashed = ErrorActorEvent<unknown, 'process'>;
type Context = { spec: BrokerSpec; binary: string; restarts: number; why: string };

const notProvided = () => {
  throw new Error('broker: its ports were not provided');
};

// ── Setup ────────────────────────────────────────────────────────────────────

const broker = setup({
  types: { context: {} as Context, input: {} as BrokerSpec, events: {} as BrokerEvent | ProcessCrashed },
  actors: {
    locate: fromPromise<Located>(notProvided),
    process: fromCallback<ToProcess, { binary: string }>(notProvided),
  },
  actions: {
    choose: assign({ binary: (_, binary: string | undefined) => binary ?? '' }),
    blame: assign({ why: (_, why: string) => why }),
    forgive: assign({ why: '' }),
    forgetRestarts: assign({ restarts: 0 }),
    countRestart: assign({ restarts: ({ context }) => context.restarts + 1 }),
    stopProcess: sendTo('process', { type: 'stop' }),
  },
  guards: { isOurs: (_, located: Located) => located.binary !== undefined },
  delays: {
    backoff: ({ context: { spec, restarts } }) => spec.backoffMs[Math.min(restarts, spec.backoffMs.length) - 1] ?? 0,
    retry: ({ context }) => context.spec.retryMs,
    close: ({ context }) => context.spec.closeMs,
    settle: ({ context }) => context.spec.settleMs,
  },
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const brokerMachine = broker.createMachine({
  id: 'broker',
  context: ({ input }) => ({ spec: input, binary: '', restarts: 0, why: '' }),
  initial: 'idle',
  states: {
    idle: { on: { start: 'locating', stop: 'stopped' } },
    locating: {
      invoke: {
        id: 'locate',
        src: 'locate',
        onDone: [
          {
            guard: { type: 'isOurs', params: ({ event }) => event.output },
            target: 'up',
            actions: { type: 'choose', params: ({ event }) => event.output.binary },
          },
          { target: 'external', actions: 'forgive' },
        ],
        onError: { target: 'missing', actions: { type: 'blame', params: ({ event }) => String(event.error) } },
      },
      on: { stop: 'stopped' },
    },
    external: { on: { stop: 'stopped' } },
    missing: { after: { retry: 'locating' }, on: { start: 'locating', stop: 'stopped' } },
    up: {
      invoke: {
        id: 'process',
        src: 'process',
        input: ({ context }) => ({ binary: context.binary }),
        onError: { target: 'waiting', actions: { type: 'blame', params: ({ event }) => String(event.error) } },
      },
      initial: 'starting',
      on: { 'process.exited': { target: 'waiting', actions: { type: 'blame', params: ({ event }) => event.why } } },
      states: {
        starting: { on: { 'process.ready': { target: 'running', actions: 'forgive' }, stop: 'closing' } },
        running: { after: { settle: { actions: 'forgetRestarts' } }, on: { stop: 'closing' } },
        closing: {
          entry: 'stopProcess',
          on: { 'process.exited': '#broker.stopped', 'xstate.error.actor.process': '#broker.stopped' },
          after: { close: '#broker.stopped' },
        },
      },
    },
    waiting: { entry: 'countRestart', after: { backoff: 'locating' }, on: { start: 'locating', stop: 'stopped' } },
    stopped: { type: 'final' },
  },
});
