// The contract of tasks, in memory, for what a door does with it: nothing is recorded and nothing is called; the test says
// what becomes of each.

import type { Outcome, TaskView } from '../../src/calls/call.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import { isEnded } from '../../src/protocol/tasks.ts';
import type { Tasks } from '../../src/tasks/task.ts';

type Little = Pick<Tasks, 'get' | 'list' | 'outcome' | 'cancel'>;

const AT = new Date(0).toISOString();

export const taskView = (taskId: string, change: Partial<TaskView> = {}): TaskView => ({
  ...{ taskId, status: 'working', createdAt: AT, lastUpdatedAt: AT, ttl: 60_000, pollInterval: 1_000 },
  ...{ server: 'gh', tool: 'search', principal: '_', phase: 'dispatching', attempt: 1, ...change },
});

export function littleTasks(views: TaskView[], { pageSize = 100, guesses = 1e9 } = {}) {
  const known = new Map(views.map((view) => [view.taskId, view]));
  const outcomes = new Map<string, Outcome>();
  const waiting = new Map<string, Set<() => void>>();
  let missed = 0;

  const find = (id: string, principal: string | undefined): TaskView => {
    const view = known.get(id);
    if (view && view.principal === principal) return view;
    if (++missed > guesses) throw new TroupeError('busy', 'too many ids that there are not');
    throw new TroupeError('unknownName', view ? `it is of ${view.principal}` : 'there is none');
  };
  const wake = (id: string): void => {
    for (const each of waiting.get(id) ?? []) each();
  };

  const tasks: Little = {
    get: find,
    list(principal, cursor = '0') {
      if (!/^\d+$/.test(cursor)) throw new TroupeError('invalid', 'the cursor is none');
      const own = [...known.values()].filter((view) => view.principal === principal);
      const end = Number(cursor) + pageSize;
      return { tasks: own.slice(Number(cursor), end), ...(end < own.length && { next: String(end) }) };
    },
    outcome(id, principal, signal) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const outcome = outcomes.get(id);
          if (!outcome) return;
          waiting.get(id)?.delete(look);
          resolve(outcome);
        };
        find(id, principal);
        waiting.set(id, (waiting.get(id) ?? new Set()).add(look));
        const giveUp = (): void => {
          waiting.get(id)?.delete(look);
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', giveUp);
        look();
        if (signal?.aborted) giveUp();
      });
    },
    async cancel(id, principal) {
      const view = find(id, principal);
      if (isEnded(view.status)) throw new TroupeError('ended', `task ${id} has ended: it is ${view.status}`);
      const cancelled: TaskView = { ...view, status: 'cancelled', phase: 'ended' };
      known.set(id, cancelled);
      return cancelled;
    },
  };
  return {
    tasks,
    known,
    waiters: (id: string): number => waiting.get(id)?.size ?? 0,
    get missed() {
      return missed;
    },
    end(id: string, outcome: Outcome): void {
      const view = known.get(id);
      if (view) known.set(id, { ...view, status: outcome.ok ? 'completed' : 'failed', phase: 'ended' });
      outcomes.set(id, outcome);
      wake(id);
    },
  };
}
