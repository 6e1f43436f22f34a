// The books of the chaos of tasks: what was ordered, every answer that a host was given, what became of each task in the
// eyes of each daemon, and what the servers say they executed. Whatever died, the books must balance.

import { expect } from 'vitest';

export type Order = {
  /** What the tool notes when it is executed; of this order alone. */
  readonly id: string;
  readonly server: string;
  readonly ms: number;
  readonly key?: string;
  readonly plan: readonly { readonly step: 'get' | 'result' | 'cancel'; readonly afterMs: number }[];
};
export type Report = {
  readonly id: string;
  readonly what: 'created' | 'get' | 'result' | 'cancel' | 'done' | 'broke';
  readonly task?: string;
  readonly status?: string;
  readonly outcome?: string;
  readonly code?: string;
  readonly delivery?: string;
  readonly isSilent?: boolean;
  readonly why?: string;
};
/** How a task ended, as daemons tell it. */
export type Ending = {
  readonly status: string;
  readonly attempt: number;
  readonly outcome?: string;
  readonly code?: string;
  readonly delivery?: string;
};
export type TasksLedger = ReturnType<typeof createTasksLedger>;

type Entry = { readonly order: Order; readonly reports: Report[] };

/** A call that kills whoever makes it is not made for ever. */
const MOST_ATTEMPTS = 3;
const ENDED = ['completed', 'failed', 'cancelled'];

export function createTasksLedger() {
  const entries = new Map<string, Entry>();
  let heard = 0;

  return {
    /** Counts up with each order and each answer: the clock of the rounds. */
    get heard() {
      return heard;
    },
    ordered(order: Order): void {
      heard++;
      entries.set(order.id, { order, reports: [] });
    },
    reported(report: Report): void {
      heard++;
      entries.get(report.id)?.reports.push(report);
    },
    storyOf: (id: string): string => JSON.stringify(entries.get(id)),
    /** Every task that some host was told of. */
    acknowledged: (): string[] => [...new Set([...entries.values()].flatMap(({ reports }) => tasksOf(reports)))],

    /** `mayRepeat` are the servers whose calls may be made again; `executed` has one id for each execution. */
    balance(endings: ReadonlyMap<string, Ending>, executed: readonly string[], mayRepeat: readonly string[]) {
      const executions = new Map<string, number>();
      for (const id of executed) executions.set(id, (executions.get(id) ?? 0) + 1);
      const summary: Record<string, number> = { orders: entries.size, executed: executed.length };
      const wrong: string[] = [];
      for (const { order, reports } of entries.values()) {
        const times = executions.get(order.id) ?? 0;
        const [task, ...others] = tasksOf(reports);
        const ending = task === undefined ? undefined : endings.get(task);
        const fate = ending ? [ending.status, ending.delivery].filter(Boolean).join(', ') : 'never acknowledged';
        summary[fate] = (summary[fate] ?? 0) + 1;
        const mayRun = mayRepeat.includes(order.server) ? MOST_ATTEMPTS : 1;
        const complaints = [
          ...(others.length > 0 ? ['several tasks for one order'] : []),
          ...(task && !ending ? ['acknowledged, and lost'] : []),
          ...reports.flatMap(({ what, why }) => (what === 'broke' ? [`the host broke, ${why}`] : [])),
          ...(ending ? endingComplaints(ending, times, Math.min(mayRun, ending.attempt), order.id) : []),
          ...(ending ? reportComplaints(reports, ending) : []),
          ...(task === undefined ? creationComplaints(reports, times, mayRun) : []),
        ];
        for (const complaint of complaints)
          wrong.push(`${complaint}: executed ${times} times; ${JSON.stringify({ order, ending, reports })}`);
      }
      expect(wrong).toEqual([]);
      return summary;
    },
  };
}

const tasksOf = (reports: readonly Report[]): string[] => [
  ...new Set(reports.flatMap(({ what, task }) => (what === 'created' && task ? [task] : []))),
];

/** What a task says of itself must fit what its server did. */
function endingComplaints(ending: Ending, times: number, mayRun: number, id: string): string[] {
  const { status, delivery, outcome } = ending;
  const wrong: string[] = [];
  if (!ENDED.includes(status)) wrong.push(`still ${status}`);
  if (times > mayRun) wrong.push('executed too often');
  if (status === 'completed' && times === 0) wrong.push('completed, and not executed');
  if (status === 'completed' && outcome !== id) wrong.push(`completed with ${outcome}`);
  if (status !== 'completed' && delivery !== 'not sent' && delivery !== 'outcome unknown')
    wrong.push(`no word of whether it was sent, but ${delivery}`);
  if (delivery === 'not sent' && times > 0) wrong.push('said not to be sent, and executed');
  return wrong;
}

/** What has ended never changes, whoever is asked. */
function reportComplaints(reports: readonly Report[], ending: Ending): string[] {
  const wrong: string[] = [];
  let isOver = false;
  for (const { what, status, code, outcome, delivery, isSilent } of reports) {
    if (isSilent && what !== 'created') wrong.push(`nobody answered ${what}`);
    if (what !== 'created' && code === 'unknownName') wrong.push(`${what} of an acknowledged task: there is none`);
    if (isOver && status && !ENDED.includes(status)) wrong.push(`${status} again`);
    if (status && ENDED.includes(status) && status !== ending.status) wrong.push(`was ${status} before`);
    if (what === 'result' && outcome !== undefined && outcome !== ending.outcome)
      wrong.push(`came to ${outcome} before`);
    if (what === 'result' && delivery && (code !== ending.code || delivery !== ending.delivery))
      wrong.push(`came to ${code}, ${delivery} before`);
    isOver ||= status !== undefined && ENDED.includes(status);
  }
  return wrong;
}

/** Refused is not made; only who got no answer does not know. */
function creationComplaints(reports: readonly Report[], times: number, mayRun: number): string[] {
  const answers = reports.filter(({ what }) => what === 'created');
  if (times > mayRun) return ['executed too often'];
  const isRefused = answers.every(({ isSilent, delivery }) => !isSilent && delivery === 'not sent');
  return isRefused && times > 0 ? ['refused, and executed'] : [];
}
