// One task as the daemon sees it that owns it: from the order, through the call, to the outcome on the disk. Whatever is written
// into its row, sent to its server or told to others is an effect that this chart orders. What MCP 2025-11-25 calls the status of
// a task is a projection of its state. Like the request's, the chart is lowered to a table.

import { not, or, setup, stateIn } from 'xstate';

// ── The lifecycle of MCP ─────────────────────────────────────────────────────

export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
/** The statuses that never change again. */
export type TaskEnding = Exclude<TaskStatus, 'working' | 'input_required'>;

/** What a task is to the world while it is in that state of the chart; nothing where this daemon has no say in it. */
export function statusOf(value: unknown): TaskStatus | undefined {
  if (typeof value === 'string') return TASK_STATUSES.find((status) => status === value);
  const { live } = value as { live: { input: 'none' | 'required' } };
  return live.input === 'required' ? 'input_required' : 'working';
}

// ── Types ────────────────────────────────────────────────────────────────────

/** An order, or a row that is found. */
type BeginEvent = 'create' | 'created.queued' | 'created.dispatching' | 'refused' | 'taken' | AdoptionEvent;
type AdoptionEvent = 'adopted.queued' | 'adopted.followed' | 'adopted.asking';
/** Its call: whether it may be sent, what is said meanwhile, and what came of it. */
type CallEvent = 'reserve' | 'signal' | 'upstream' | 'answered' | 'unsent' | 'lost.followed' | 'lost.rerun';
/** What is shown of it. */
type StatusEvent = 'input.required' | 'input.given' | 'message';
/** Its row: what stands, what a full disk has not taken, and that it is somebody else's. */
type RowEvent = 'reserved' | 'requeued' | 'shown' | `ended.${TaskEnding}` | 'released' | FullEvent | 'row.lost';
type FullEvent = 'reserve.full' | 'requeue.full' | 'show.full' | 'end.full';
type TimeEvent = 'due' | 'retry' | 'reshow';
/** People, the daemon, and a bug. */
type OuterEvent = 'cancel' | 'cancelled' | 'leave' | 'leave.followed' | 'broke';

export type TaskEvent = {
  readonly type: BeginEvent | CallEvent | StatusEvent | RowEvent | TimeEvent | OuterEvent;
};

type BeginEffect = 'insert' | 'writeReserved' | 'writeUnsent' | 'writeRerun';
type ShowEffect = 'writeStatus' | 'writeUpstream';
type EndEffect = 'writeEnding' | 'writeStopped' | 'rewriteEnding' | 'writeCancelled' | 'writeReleased';
type CallEffect = 'submit' | 'submitReserved' | 'grant' | 'deny' | 'stopCall' | 'letGo' | 'abandon';
type NewsEffect = 'tell' | 'tellCancelled' | 'tellPeers' | 'relay' | 'close' | 'discard';
type TimeEffect = 'waitForServer' | 'retryLater' | 'reshowLater';
/** What the chart orders; src/tasks/effects.ts and running.ts do it. */
export type TaskEffect = BeginEffect | ShowEffect | EndEffect | CallEffect | NewsEffect | TimeEffect;

// ── Setup ────────────────────────────────────────────────────────────────────

const isIn = (run: string) => stateIn({ live: { run } });

const task = setup({
  types: { events: {} as TaskEvent },
  actions: {} as Record<TaskEffect, () => void>,
  guards: {
    isLeaving: stateIn({ live: { daemon: 'leaving' } }),
    isKnown: isIn('known'),
    isUnderWay: not(or([isIn('known'), isIn('creating'), isIn('ending'), isIn('releasing')])),
  },
});

// ── Machine ──────────────────────────────────────────────────────────────────

/** The server's word, or a failure that nothing can mend, is the outcome. */
const ANSWERED = { target: 'ending', actions: 'writeEnding' } as const;
/** Nothing has been sent, or the server goes on by itself: whoever comes next goes on with it. */
const LEAVES = { leave: 'releasing', 'leave.followed': 'releasing' } as const;

export const taskMachine = task.createMachine({
  id: 'task',
  initial: 'live',
  states: {
    live: {
      type: 'parallel',
      on: {
        signal: { guard: 'isUnderWay', actions: 'relay' },
        upstream: { guard: 'isUnderWay', actions: 'writeUpstream' },
        message: { guard: 'isUnderWay', actions: 'writeStatus' },
        shown: { actions: 'tell' },
        'show.full': { guard: 'isUnderWay', actions: 'reshowLater' },
        reshow: { guard: 'isUnderWay', actions: ['writeUpstream', 'writeStatus'] },
        reserve: { actions: 'deny' },
        // Through whichever daemon: the row decides whether it had ended before.
        cancel: { actions: 'writeCancelled' },
        cancelled: { target: 'cancelled', actions: ['tellCancelled', 'stopCall'] },
        'row.lost': { target: 'lost' },
      },
      states: {
        run: {
          initial: 'known',
          // A bug of ours is no reason to keep a task: whoever looks next finds it as one that was interrupted.
          on: { broke: '.releasing' },
          states: {
            /** There is a row, or an order, and nothing has been done about it here. */
            known: {
              on: {
                create: { target: 'creating', actions: 'insert' },
                'adopted.queued': 'queued',
                'adopted.followed': { target: 'dispatched', actions: 'submitReserved' },
                // One that was sent, by a daemon that is gone.
                answered: ANSWERED,
                'lost.rerun': 'rerunning',
              },
            },
            creating: {
              on: {
                create: { actions: 'insert' },
                'created.queued': [{ guard: 'isLeaving', target: 'releasing' }, { target: 'queued' }],
                'created.dispatching': [
                  { guard: 'isLeaving', target: 'requeueing' },
                  { target: 'dispatched', actions: 'submitReserved' },
                ],
                refused: '#task.refused',
                taken: '#task.lost',
                // Only when it is on the disk can somebody else have it.
                'row.lost': {},
              },
            },
            /** Its call waits for its turn; nothing has been sent. */
            queued: {
              entry: 'submit',
              on: {
                reserve: { target: 'reserving', actions: 'writeReserved' },
                answered: ANSWERED,
                unsent: 'held',
                ...LEAVES,
              },
            },
            /** It is about to be sent, which is being written down first. */
            reserving: {
              on: {
                reserved: { target: 'dispatched', actions: 'grant' },
                // The next call may need no disk, so this one is not kept waiting for it.
                'reserve.full': { target: 'returning', actions: 'deny' },
                answered: ANSWERED,
                unsent: 'returned',
                ...LEAVES,
              },
            },
            /** It may not be sent, and its call comes back. */
            returning: { on: { answered: 'held', unsent: 'held', ...LEAVES } },
            /** Its call came back before it was written that it may be sent. */
            returned: { on: { reserved: 'requeueing', 'reserve.full': 'held', ...LEAVES } },
            /** Its bytes may have reached its server. */
            dispatched: {
              on: {
                reserve: { actions: 'grant' },
                answered: [{ guard: 'isLeaving', target: 'ending', actions: 'writeStopped' }, ANSWERED],
                unsent: 'requeueing',
                'lost.followed': [{ guard: 'isLeaving', target: 'releasing' }, { target: 'apart' }],
                'lost.rerun': 'rerunning',
                'leave.followed': 'releasing',
              },
            },
            /** Nothing was sent: its server, or the disk, takes nothing at this moment. */
            held: { entry: 'waitForServer', on: { due: 'queued', ...LEAVES } },
            /** Its server works on a task of its own, out of reach for a while. */
            apart: {
              entry: 'waitForServer',
              on: { due: { target: 'dispatched', actions: 'submitReserved' }, ...LEAVES },
            },
            requeueing: {
              entry: 'writeUnsent',
              on: {
                requeued: [{ guard: 'isLeaving', target: 'releasing' }, { target: 'held' }],
                'requeue.full': { actions: 'retryLater' },
                retry: { actions: 'writeUnsent' },
              },
            },
            /** It was sent and is lost, and may be sent once more. */
            rerunning: {
              entry: 'writeRerun',
              on: {
                requeued: [{ guard: 'isLeaving', target: 'releasing' }, { target: 'queued' }],
                'requeue.full': { actions: 'retryLater' },
                retry: { actions: 'writeRerun' },
              },
            },
            /** Its outcome is known and is being written. */
            ending: {
              on: {
                'ended.completed': { target: '#task.completed', actions: 'tell' },
                'ended.failed': { target: '#task.failed', actions: 'tell' },
                'ended.cancelled': { target: '#task.cancelled', actions: 'tell' },
                'end.full': { actions: 'retryLater' },
                retry: { actions: 'rewriteEnding' },
              },
            },
            /** It is given to whoever comes next. A disk that does not take this is none of their trouble: we shall be gone. */
            releasing: { entry: ['letGo', 'writeReleased'], on: { released: '#task.released', broke: {} } },
          },
        },
        input: {
          initial: 'none',
          states: {
            none: {
              on: {
                'input.required': { guard: 'isUnderWay', target: 'required', actions: 'writeStatus' },
                'adopted.asking': { guard: 'isKnown', target: 'required' },
              },
            },
            required: {
              on: {
                'input.given': { guard: 'isUnderWay', target: 'none', actions: 'writeStatus' },
                requeued: 'none',
              },
            },
          },
        },
        daemon: {
          initial: 'staying',
          states: { staying: { on: { leave: 'leaving', 'leave.followed': 'leaving' } }, leaving: {} },
        },
      },
    },
    completed: { type: 'final', entry: 'close' },
    failed: { type: 'final', entry: 'close' },
    cancelled: { type: 'final', entry: 'close' },
    /** Its row was not added. */
    refused: { type: 'final', entry: 'discard' },
    released: { type: 'final', entry: ['tellPeers', 'close'] },
    /** It was adopted, cancelled elsewhere or deleted. */
    lost: { type: 'final', entry: ['abandon', 'close'] },
  },
});
