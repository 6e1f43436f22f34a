// What is shown of a task while it runs: whether somebody must be asked, what its server says of it, and how far it is. The row
// says so first.

import type { Signal, UpstreamTask } from '../calls/call.ts';
import type { TaskRow } from '../store/rows.ts';
import { INPUT, keptOf } from './endings.ts';
import type { Rows } from './rows.ts';

export type StandingPorts = {
  readonly rows: Rows;
  /** It has ended, or is about to. */
  readonly isOver: () => boolean;
  /** Writes it, whenever the disk takes it, and goes on if it stands. */
  readonly write: (write: () => Promise<boolean>, then: () => void) => void;
  readonly onStatus: (change: 'input.required' | 'input.given' | 'message') => void;
  readonly onSignal: (signal: Signal) => void;
};

const PROGRESS_MS = 1_000;

/** `task` holds the row as its owner knows it. */
export function createStanding(task: { row: TaskRow }, { rows, isOver, write, onStatus, onSignal }: StandingPorts) {
  let questions = 0;
  let upstream: UpstreamTask | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;

  function review(): void {
    if (isOver()) return;
    const isWaiting = questions > 0 || upstream?.status === 'input_required';
    const status = isWaiting ? 'input_required' : 'working';
    const message = (questions > 0 ? INPUT : upstream?.statusMessage) ?? null;
    const before = task.row;
    if (status === before.status && message === before.message) return;
    const row = { ...before, status, message, updated_at: Date.now() } as const;
    task.row = row;
    const change = status === before.status ? 'message' : isWaiting ? 'input.required' : 'input.given';
    write(
      () => rows.setStatus(row),
      () => onStatus(change),
    );
  }

  return {
    /** A question was opened on its behalf, or is done with. */
    asked(change: 1 | -1): void {
      questions += change;
      review();
    },
    onUpstream(told: UpstreamTask): void {
      const { taskId } = told;
      if (taskId !== task.row.upstream) {
        task.row = { ...task.row, upstream: taskId };
        // Another attempt may have been made before the disk takes it.
        write(
          async () => task.row.upstream !== taskId || rows.setUpstream(task.row, taskId),
          () => {},
        );
      }
      upstream = told;
      review();
    },
    /** Progress is kept now and then, for those who look from elsewhere. */
    onSignal(signal: Signal): void {
      if (isOver()) return;
      onSignal(signal);
      if (signal.type !== 'progress') return;
      task.row = { ...task.row, progress: keptOf(signal) };
      if (performance.now() - writtenAt < PROGRESS_MS) return;
      writtenAt = performance.now();
      rows.setProgress(task.row);
    },
    /** The server's own task is none of it any more. */
    forget(): void {
      upstream = undefined;
    },
  };
}
