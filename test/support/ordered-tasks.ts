// Tasks of a few lines, to look at a session alone: what it orders is kept, and ends when the test says so.

import type { Answer, Ask, Asking, Outcome, TaskView } from '../../src/calls/call.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import type { Attend } from '../../src/sessions/ports.ts';
import type { Order, Principal, Tasks } from '../../src/tasks/task.ts';

const PAGE = 3;

export function orderedTasks() {
  const views = new Map<string, TaskView>();
  const waiting: { readonly id: string; readonly settle: (outcome: Outcome) => void }[] = [];
  const attending = new Set<Parameters<Attend>[0]>();
  const orders: Order[] = [];

  function get(id: string, principal: Principal): TaskView {
    const found = views.get(id);
    if (!found || found.principal !== principal) throw new TroupeError('unknownName', `there is no task ${id}`);
    return found;
  }

  const tasks: Tasks = {
    async create(order) {
      orders.push(order);
      const { server, tool, principal, ttlMs: ttl = 1_000 } = order;
      const at = new Date(0).toISOString();
      const view: TaskView = {
        ...{ taskId: `task-${orders.length}`, status: 'working', createdAt: at, lastUpdatedAt: at, ttl },
        ...{ pollInterval: 10, server, tool, principal, phase: 'dispatching', attempt: 1 },
      };
      views.set(view.taskId, view);
      return view;
    },
    get,
    list(principal, cursor) {
      const all = [...views.values()].filter((each) => each.principal === principal);
      if (cursor !== undefined && !/^\d+$/.test(cursor)) throw new TroupeError('invalid', 'that is no cursor');
      const end = Number(cursor ?? 0) + PAGE;
      return { tasks: all.slice(end - PAGE, end), ...(end < all.length && { next: String(end) }) };
    },
    outcome: (id, principal, signal) =>
      new Promise((resolve, reject) => {
        get(id, principal);
        waiting.push({ id, settle: resolve });
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
    async cancel(id, principal) {
      const view = { ...get(id, principal), status: 'cancelled' as const };
      views.set(id, view);
      return view;
    },
    prune: async () => 0,
    isRunningFor: () => false,
    version: 0,
    changed: async () => {},
  };

  return {
    tasks,
    orders,
    attending,
    attend: (to: Parameters<Attend>[0]): void => {
      attending.add(to);
      to.signal.addEventListener('abort', () => attending.delete(to));
    },
    /** Everybody who waits for that task is told. */
    end: (id: string, outcome: Outcome) => {
      for (const each of waiting) if (each.id === id) each.settle(outcome);
    },
    /** Asks whoever attends to that task; what is answered is kept in the list. */
    ask(id: string, about: Pick<Ask, 'method' | 'params'> & Partial<Ask>) {
      const answers: Answer[] = [];
      const askings: (Asking | undefined)[] = [];
      for (const { task, onAsk } of attending)
        if (task === id) askings.push(onAsk({ answer: (answer) => void answers.push(answer), ...about }));
      return { answers, askings };
    },
  };
}
