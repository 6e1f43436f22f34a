// What each state of a server means to its callers, to readers of its lists and to those who wait for it, in one table. The
// states are those of machines/server.ts, and a test holds this table to that chart.

import type { SnapshotFrom } from 'xstate';
import type { ServerSpec, serverMachine } from '../../machines/server.ts';
import type { Gate } from '../calls/outcomes.ts';
import type { ServerConfig } from '../config/schema.ts';

export type ServerSnapshot = SnapshotFrom<typeof serverMachine>;

export type Meaning = {
  /** What happens to a call that comes now: it is sent, it waits, or it is refused. */
  readonly calls: Gate['mode'];
  /** The server leaves this state only when it is told to, or wanted. */
  readonly isAtRest: boolean;
  /** Only a person brings the server back. */
  readonly isDown: boolean;
  /** The server is ready, or will be by itself or as soon as it is wanted: its lists can be waited for. */
  readonly isComing: boolean;
  /** The server is being closed. */
  readonly isLeaving: boolean;
  /** The session with the server is open. */
  readonly isConnected: boolean;
  /** What a refused caller is told; without these two, `is <state>` and how to start the server. */
  readonly says?: string;
  readonly remedy?: string;
};

export const STATES = {
  stopped: {
    calls: 'refuse',
    isAtRest: true,
    isDown: true,
    isComing: false,
    isLeaving: false,
    isConnected: false,
  },
  opening: {
    calls: 'hold',
    isAtRest: false,
    isDown: false,
    isComing: true,
    isLeaving: false,
    isConnected: false,
    remedy: 'it is restarting, try again',
  },
  ready: {
    calls: 'open',
    isAtRest: false,
    isDown: false,
    isComing: true,
    isLeaving: false,
    isConnected: true,
  },
  // Where a server goes after its goodbye is in its context: those that come back hold calls, see `gateOf`.
  draining: {
    calls: 'refuse',
    isAtRest: false,
    isDown: false,
    isComing: false,
    isLeaving: true,
    isConnected: true,
    remedy: 'it is closing, try again soon',
  },
  closing: {
    calls: 'refuse',
    isAtRest: false,
    isDown: false,
    isComing: false,
    isLeaving: true,
    isConnected: false,
    remedy: 'it is closing, try again soon',
  },
  waiting: {
    calls: 'hold',
    isAtRest: false,
    isDown: false,
    isComing: true,
    isLeaving: false,
    isConnected: false,
    remedy: 'it is restarting, try again',
  },
  failed: {
    calls: 'refuse',
    isAtRest: true,
    isDown: true,
    isComing: false,
    isLeaving: false,
    isConnected: false,
  },
  // The reason says the remedy itself.
  'needs login': {
    calls: 'refuse',
    isAtRest: true,
    isDown: true,
    isComing: false,
    isLeaving: false,
    isConnected: false,
    says: 'needs login',
    remedy: '',
  },
  asleep: {
    calls: 'hold',
    isAtRest: true,
    isDown: false,
    isComing: true,
    isLeaving: false,
    isConnected: false,
  },
} as const satisfies Record<string, Meaning>;

export type ServerState = keyof typeof STATES;

export const meaningOf = (state: ServerState): Meaning => STATES[state];

/** The state that a failure names, if it is one that passes by itself or when the server is wanted. */
export const isPassing = (state: string): boolean =>
  Object.hasOwn(STATES, state) && !meaningOf(state as ServerState).isDown && state !== 'ready';

export function stateOf({ value }: ServerSnapshot): ServerState {
  if (typeof value === 'object') {
    if (!('up' in value)) return 'waiting';
    return typeof value.up === 'object' ? 'ready' : value.up;
  }
  if (value === 'needsLogin') return 'needs login';
  return value === 'gone' || value === 'down' || value === 'closed' ? 'stopped' : value;
}

export function gateOf(snapshot: ServerSnapshot): Gate {
  const state = stateOf(snapshot);
  const { why, next } = snapshot.context;
  const comesBack = meaningOf(state).isLeaving && (next === 'up' || next === 'asleep');
  return gate(state, why, comesBack ? 'hold' : meaningOf(state).calls);
}

/** What a lane is told of a server in that state. */
export function gate(state: ServerState, why: string, mode: Gate['mode'] = meaningOf(state).calls): Gate {
  const { says, remedy } = meaningOf(state);
  return { mode, state, why, ...(says !== undefined && { says }), ...(remedy !== undefined && { remedy }) };
}

/** The ladder of a goodbye has its own patience; the machine's is a little longer, and ends it by force. */
const GRACE_MS = 1_000;

export const specOf = (name: string, { transport, settings }: ServerConfig): ServerSpec => ({
  name,
  restart: settings.restart,
  isRemote: transport !== 'stdio',
  openMs: settings.openMs,
  drainMs: settings.drainMs,
  closeMs: settings.stdinMs + settings.termMs + GRACE_MS,
});
