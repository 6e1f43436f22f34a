// One task that this daemon owns: a record that the chart in machines/task.ts drives, lowered to a table. An event that the
// task's state does not know, such as a second answer or the end of a write that came too late, changes nothing.

import { lowered, type Row } from '../../machines/lowered.ts';
import { type TaskEffect, type TaskEvent, taskMachine } from '../../machines/task.ts';
import type { Outcome, Signal, UpstreamTask } from '../calls/call.ts';
import { progressTokenOf } from '../protocol/signals.ts';
import type { TaskRow } from '../store/rows.ts';
import type { Order } from './task.ts';

export type TaskEventType = TaskEvent['type'];

/** A plain record: it is made and dropped for every task. */
export type OwnedTask = {
  state: Row<TaskEventType, TaskEffect>;
  /** As this daemon has last written it, or given it to the disk to write. */
  row: TaskRow;
  readonly params: Buffer;
  readonly canAnswer: Order['canAnswer'];
  /** Under which the host that made it is told of its progress. */
  readonly progressToken: string | undefined;
  /** How many questions to people are open on its behalf. */
  questions: number;
  /** What its server last said of the task that it runs for this one. */
  upstream: UpstreamTask | undefined;
  /** What its last call came to; once the task ends, as it is kept. */
  outcome: Outcome | undefined;
  /** How the call is told whether it may be sent, while it waits for that. */
  reservation: ((mayBeSent: boolean) => void) | undefined;
  /** The rule as it was when the daemon began to stop: soon there is no server any more that could say so. */
  mayRerun: boolean | undefined;
  /** When its progress was last written. */
  progressAt: number;
};

/** What comes with an event. */
export type Brought = {
  /** The row from now on. */
  readonly row?: TaskRow;
  /** What the row says now, as far as it is another: the rest may have changed while it was written. */
  readonly changes?: Partial<TaskRow>;
  /** The row as it was written, to be told. */
  readonly shown?: TaskRow;
  readonly outcome?: Outcome;
  readonly signal?: Signal;
  /** Takes the write that was ordered. */
  readonly settle?: (write: Promise<boolean>) => void;
};

export type Effects = { readonly [effect in TaskEffect]: (task: OwnedTask, brought: Brought) => void };
/** Makes one step; false when the task's state does not know the event. */
export type Send = (task: OwnedTask, event: TaskEventType, brought?: Brought) => boolean;

const FIRST = lowered<TaskEventType, TaskEffect>(taskMachine);
const NOTHING: Brought = {};

export const newTask = (row: TaskRow, params: Buffer, canAnswer?: Order['canAnswer']): OwnedTask => ({
  state: FIRST,
  row,
  params,
  canAnswer,
  progressToken: progressTokenOf(params),
  questions: 0,
  upstream: undefined,
  outcome: undefined,
  reservation: undefined,
  mayRerun: undefined,
  progressAt: Number.NEGATIVE_INFINITY,
});

/** An effect may bring the next event at once: the state has changed by then, and such effects come last in their step. */
export function taskDriver(effects: () => Effects, onTrouble: (error: unknown) => void): Send {
  return function send(task, event, brought = NOTHING) {
    const step = task.state.steps[event];
    if (!step) return false;
    task.state = step.next;
    if (brought.row) task.row = brought.row;
    else if (brought.changes) task.row = { ...task.row, ...brought.changes };
    try {
      for (const effect of step.effects) effects()[effect](task, brought);
    } catch (error) {
      onTrouble(error);
      send(task, 'broke');
    }
    return true;
  };
}

/** Where a task is that has not ended: `queued`, `dispatched`, `ending`, … */
export function isIn(task: OwnedTask, run: string): boolean {
  const { value } = task.state;
  return typeof value === 'object' && (value as { live: { run: string } }).live.run === run;
}

export const isOver = ({ state }: OwnedTask): boolean => typeof state.value === 'string';
