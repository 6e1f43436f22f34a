// A host's session in this daemon. That it exists is the row's to say, to all daemons on the state directory; this chart says
// whether it is in memory, whether somebody is there, and what is written to the row and when.
// It is never an actor: src/sessions lowers it to a table, because each HTTP request comes and leaves.

import { setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export type SessionEvent =
  // What the daemon wants of it.
  | { type: 'open' }
  | { type: 'found' }
  | { type: 'end' }
  | { type: 'stop' }
  // What becomes of its row: ours was written, or it was ended, here or by another daemon.
  | { type: 'row.committed' }
  | { type: 'row.refused' }
  | { type: 'row.ended' }
  // The first connection, stream or request of it, and the last.
  | { type: 'came' }
  | { type: 'left' }
  // The timer that the state has set. A rest that is over is `needed` while a server depends on the session.
  | { type: 'used' }
  | { type: 'rested' }
  | { type: 'needed' }
  | { type: 'idled' };

export type SessionEffect =
  | 'addRow'
  | 'endRow'
  /** The row shows that the session is used, now and then; `saveUse` writes it whatever was written before. */
  | 'noteUse'
  | 'saveUse'
  | 'enlist'
  | 'delist'
  | 'restore'
  | 'dispose'
  | 'dropRoots'
  | 'tellEnded'
  | 'startUse'
  | 'startRest'
  | 'startIdle'
  | 'stopTimer';

const effect = () => {};

// ── Setup ────────────────────────────────────────────────────────────────────

const session = setup({
  types: { events: {} as SessionEvent },
  actions: {
    addRow: effect,
    endRow: effect,
    noteUse: effect,
    saveUse: effect,
    enlist: effect,
    delist: effect,
    restore: effect,
    dispose: effect,
    dropRoots: effect,
    tellEnded: effect,
    startUse: effect,
    startRest: effect,
    startIdle: effect,
    stopTimer: effect,
  } satisfies Record<SessionEffect, () => void>,
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const sessionMachine = session.createMachine({
  id: 'session',
  initial: 'absent',
  states: {
    // Not in memory. There may be a row, from which any daemon can bring the session back.
    absent: {
      on: {
        open: { target: 'opening', actions: 'addRow' },
        found: { target: 'resident', actions: ['enlist', 'restore'] },
        end: { actions: 'endRow' },
      },
    },
    // Nobody has heard of it: its id is given out when the row is on the disk.
    opening: {
      on: {
        'row.committed': { target: 'resident', actions: 'enlist' },
        'row.refused': { target: 'closed', actions: 'dispose' },
      },
    },
    resident: {
      initial: 'detached',
      exit: 'stopTimer',
      on: {
        end: { actions: 'endRow' },
        'row.ended': { target: 'closed', actions: ['delist', 'dispose', 'dropRoots', 'tellEnded'] },
        stop: { target: 'absent', actions: ['saveUse', 'delist'] },
      },
      states: {
        open: {
          entry: 'startUse',
          on: {
            left: { target: 'detached', actions: 'noteUse' },
            used: { actions: ['noteUse', 'startUse'] },
            stop: { target: '#session.absent', actions: ['noteUse', 'saveUse', 'delist'] },
          },
        },
        detached: {
          entry: 'startRest',
          on: {
            came: 'open',
            needed: 'retained',
            rested: { target: '#session.absent', actions: ['delist', 'dispose'] },
          },
        },
        // Nobody is there, but it listens to something or has a process of its own: it stays for as long as its row may.
        retained: {
          entry: 'startIdle',
          on: {
            came: 'open',
            idled: { target: '#session.absent', actions: ['delist', 'dispose'] },
          },
        },
      },
    },
    closed: { type: 'final' },
  },
});
