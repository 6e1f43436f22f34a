// The life of one MCP server: it is opened, serves, drains, closes; after a failure it is reopened, until it failed
// too often. Calls do not pass through here: the connection carries them, and tells when the last one is done.

import type { ErrorActorEvent } from 'xstate';
import { assign, fromCallback, raise, sendTo, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/** More than `intensity` restarts within `periodMs` is a crash loop. `backoffMs` is the wait before each. */
export type RestartPolicy = {
  readonly intensity: number;
  readonly periodMs: number;
  readonly backoffMs: readonly number[];
};
export type ServerSpec = {
  readonly name: string;
  readonly restart: RestartPolicy;
  /** Its failure is an outage of something that others run: whoever wants it may try again before its time. */
  readonly isRemote: boolean;
  readonly openMs: number;
  readonly drainMs: number;
  readonly closeMs: number;
};

/** Where a server goes once it is closed. */
export type Destination = 'stopped' | 'asleep' | 'up' | 'gone';

export type ServerCommand =
  | { type: 'start' }
  | { type: 'stop' }
  | { type: 'restart' }
  | { type: 'remove' }
  | { type: 'wanted' }
  | { type: 'login.done' };
export type ToConnection = { type: 'drain' } | { type: 'close' } | { type: 'probe' };
export type FromConnection =
  | { type: 'connection.ready' }
  /** The server has said something, whatever it was. */
  | { type: 'connection.heard' }
  /** Nothing was heard of it for a while, or a call was not answered: it may be asked whether it is there. */
  | { type: 'connection.silent' }
  /** It is there, but cannot answer now; it may want to be left alone for a time, and is asked every so often. */
  | { type: 'connection.ill'; why: string; everyMs: number; retryMs: number }
  /** It is there, and does not know what it was asked. */
  | { type: 'connection.deaf' }
  /** A call did not get through to it. */
  | { type: 'connection.unreachable'; why: string }
  | { type: 'connection.drained' }
  | { type: 'connection.quiet' }
  | { type: 'connection.refused'; why: string }
  | { type: 'connection.unauthorized'; why: string }
  | { type: 'connection.short'; why: string }
  /** `isBlamed`: a call has ended it, which is not the server's own failure. */
  | { type: 'connection.closed'; why: string; isBlamed?: boolean };
export type ServerEvent = ServerCommand | FromConnection | { type: 'restart.forgotten' };

type ConnectionCrashed = ErrorActorEvent<unknown, 'connection'>;
type Context = {
  spec: ServerSpec;
  next: Destination;
  restarts: number;
  recent: number;
  /** Attempts in a row for which the machine had too little of something, as far as their number matters. */
  shortages: number;
  why: string;
  /** How long a server that is ill is left alone before it is asked again. */
  restMs: number;
};

/** An outage is not made worse by callers: so long passes at least between two attempts that they want. */
const HURRY_MS = 100;
/** The waits between attempts while the machine is short of something. No fault of the server's, so it is tried without end. */
const SHORTAGE_MS = [250, 500, 1_000, 2_000];

/** A server that is ill is asked ever more seldom, but at least so often. */
const LONGEST_REST_MS = 600_000;

const notProvided = () => {
  throw new Error('server: the connection was not provided');
};

// ── Setup: the words the machine is written in ───────────────────────────────

const server = setup({
  types: { context: {} as Context, input: {} as ServerSpec, events: {} as ServerEvent | ConnectionCrashed },
  actors: { connection: fromCallback<ToConnection, ServerSpec>(notProvided) },
  actions: {
    headFor: assign({ next: (_, next: Destination) => next }),
    blame: assign({ why: (_, why: string) => why }),
    askForLogin: assign({
      why: ({ context, event }) =>
        `${event.type === 'connection.unauthorized' ? `${event.why}; ` : ''}run troupe login ${context.spec.name}`,
    }),
    countShortage: assign({ shortages: ({ context }) => Math.min(context.shortages + 1, SHORTAGE_MS.length) }),
    endShortage: assign({ shortages: 0 }),
    forgive: assign({ recent: 0, why: '' }),
    recover: assign({ why: '', restMs: 0 }),
    restLonger: assign({
      restMs: ({ context }, { everyMs, retryMs }: { everyMs: number; retryMs: number }) =>
        Math.min(Math.max(everyMs, 2 * context.restMs, retryMs), LONGEST_REST_MS),
    }),
    probeConnection: sendTo('connection', { type: 'probe' }),
    drainConnection: sendTo('connection', { type: 'drain' }),
    closeConnection: sendTo('connection', { type: 'close' }),
    countRestart: assign({
      restarts: ({ context }) => context.restarts + 1,
      recent: ({ context }) => context.recent + 1,
    }),
    countBlamed: assign({ restarts: ({ context }) => context.restarts + 1 }),
    // Forgetting each restart one period later makes `recent` a sliding window that needs no clock.
    forgetLater: raise({ type: 'restart.forgotten' }, { delay: 'period' }),
    forgetRestart: assign({ recent: ({ context }) => Math.max(0, context.recent - 1) }),
  },
  guards: {
    headsFor: ({ context }, next: Destination) => context.next === next,
    isRemote: ({ context }) => context.spec.isRemote,
    // One that must never restart does not restart for this either.
    isExcused: ({ context }, isBlamed: boolean) => isBlamed && context.spec.restart.intensity > 0,
    mayRestart: ({ context }) => context.recent < context.spec.restart.intensity,
  },
  delays: {
    open: ({ context }) => context.spec.openMs,
    drain: ({ context }) => context.spec.drainMs,
    close: ({ context }) => context.spec.closeMs,
    period: ({ context }) => context.spec.restart.periodMs,
    backoff: ({ context: { spec, recent, shortages } }) =>
      shortages > 0 ? nth(SHORTAGE_MS, shortages) : nth(spec.restart.backoffMs, recent),
    rest: ({ context }) => context.restMs,
    hurry: ({ context: { spec } }) => Math.min(spec.restart.backoffMs[0] ?? 0, HURRY_MS),
  },
});

/** The wait before the attempt of that number; the last one is for all that follow. */
const nth = (waits: readonly number[], attempt: number): number =>
  waits[Math.max(Math.min(attempt, waits.length), 1) - 1] ?? 0;

const headFor = (next: Destination) => ({ type: 'headFor', params: next }) as const;

/** While it says goodbye, a command only changes where it goes next, and a lost connection is what was wanted. */
const leaving = {
  start: { actions: headFor('up') },
  restart: { actions: headFor('up') },
  stop: { actions: headFor('stopped') },
  remove: { actions: headFor('gone') },
  wanted: { guard: { type: 'headsFor', params: 'asleep' }, actions: headFor('up') },
  'connection.closed': '#server.closed',
  'connection.refused': '#server.closed',
  'connection.short': '#server.closed',
  'connection.unauthorized': '#server.closed',
  'xstate.error.actor.connection': '#server.closed',
} as const;

// ── Machine: the whole life ──────────────────────────────────────────────────

export const serverMachine = server.createMachine({
  id: 'server',
  context: ({ input }) => ({ spec: input, next: 'stopped', restarts: 0, recent: 0, shortages: 0, why: '', restMs: 0 }),
  initial: 'stopped',
  on: { 'restart.forgotten': { actions: 'forgetRestart' } },
  states: {
    stopped: { on: { start: 'up', restart: 'up', remove: 'gone' } },
    asleep: { on: { start: 'up', restart: 'up', wanted: 'up', stop: 'stopped', remove: 'gone' } },
    up: {
      invoke: {
        id: 'connection',
        src: 'connection',
        input: ({ context }) => context.spec,
        onError: { target: 'down', actions: { type: 'blame', params: ({ event }) => String(event.error) } },
      },
      initial: 'opening',
      on: {
        'connection.closed': [
          {
            guard: { type: 'isExcused', params: ({ event }) => event.isBlamed === true },
            target: 'waiting',
            actions: [{ type: 'blame', params: ({ event }) => event.why }, 'countBlamed', 'endShortage'],
          },
          { target: 'down', actions: { type: 'blame', params: ({ event }) => event.why } },
        ],
        // A server that speaks no version of ours, or a command that does not exist, will not mend by trying again.
        'connection.refused': { target: 'failed', actions: { type: 'blame', params: ({ event }) => event.why } },
        'connection.short': {
          target: 'waiting',
          actions: ['countShortage', { type: 'blame', params: ({ event }) => event.why }],
        },
        // Only a person can mend this one, so it says how.
        'connection.unauthorized': { target: 'needsLogin', actions: 'askForLogin' },
        remove: { target: '.closing', actions: headFor('gone') },
      },
      states: {
        opening: {
          on: {
            'connection.ready': 'ready',
            stop: { target: 'closing', actions: headFor('stopped') },
            restart: { target: 'closing', actions: headFor('up') },
          },
          after: { open: { target: '#server.down', actions: { type: 'blame', params: 'did not open in time' } } },
        },
        ready: {
          entry: 'endShortage',
          exit: 'recover',
          on: {
            stop: { target: 'draining', actions: headFor('stopped') },
            restart: { target: 'draining', actions: headFor('up') },
            remove: { target: 'draining', actions: headFor('gone') },
            'connection.quiet': { target: 'draining', actions: headFor('asleep') },
          },
          initial: 'heard',
          states: {
            heard: {
              entry: 'recover',
              on: { 'connection.silent': 'probed', 'connection.unreachable': 'probed' },
            },
            // Silence ends this state too: the connection then says that it is closed.
            probed: {
              entry: 'probeConnection',
              on: {
                'connection.heard': 'heard',
                'connection.ill': {
                  target: 'ill',
                  actions: [
                    { type: 'blame', params: ({ event }) => event.why },
                    { type: 'restLonger', params: ({ event }) => event },
                  ],
                },
                'connection.deaf': 'unasked',
              },
            },
            ill: {
              after: { rest: 'probed' },
              on: { 'connection.heard': 'heard', 'connection.unreachable': 'probed' },
            },
            // What it was asked it does not know, so only its calls tell whether it is there.
            unasked: {
              entry: 'recover',
              on: {
                'connection.unreachable': {
                  target: '#server.down',
                  actions: { type: 'blame', params: ({ event }) => event.why },
                },
              },
            },
          },
        },
        draining: {
          entry: 'drainConnection',
          on: { ...leaving, 'connection.drained': 'closing' },
          after: { drain: 'closing' },
        },
        // Stopping an actor does not wait for it, so the goodbye is a state of its own.
        closing: { entry: 'closeConnection', on: leaving, after: { close: '#server.closed' } },
      },
    },
    closed: {
      always: [
        { guard: { type: 'headsFor', params: 'up' }, target: 'up' },
        { guard: { type: 'headsFor', params: 'asleep' }, target: 'asleep' },
        { guard: { type: 'headsFor', params: 'gone' }, target: 'gone' },
        { target: 'stopped' },
      ],
    },
    // It could be opened, whatever became of it then.
    down: {
      entry: 'endShortage',
      always: [
        { guard: 'mayRestart', target: 'waiting', actions: ['countRestart', 'forgetLater'] },
        { target: 'failed' },
      ],
    },
    waiting: {
      after: { backoff: 'up' },
      on: { start: 'up', restart: 'up', stop: 'stopped', remove: 'gone' },
      initial: 'resting',
      states: {
        resting: { on: { wanted: { guard: 'isRemote', target: 'hurried' } } },
        // An attempt that a caller wanted is none of the server's own, and does not make the next wait longer.
        hurried: { after: { hurry: { target: '#server.up', actions: 'forgetRestart' } } },
      },
    },
    failed: {
      on: {
        start: { target: 'up', actions: 'forgive' },
        restart: { target: 'up', actions: 'forgive' },
        stop: { target: 'stopped', actions: 'forgive' },
        remove: 'gone',
      },
    },
    needsLogin: { on: { start: 'up', restart: 'up', 'login.done': 'up', stop: 'stopped', remove: 'gone' } },
    gone: { type: 'final' },
  },
});
