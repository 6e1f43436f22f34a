// How tasks are written for people: short ids that still tell them apart, a table that fits, and what each one waits for.
// Words of a server stand in one line, without control characters.

import type { TaskView } from '../../calls/call.ts';
import { isEnded } from '../../protocol/tasks.ts';
import { barCell } from '../terminal/progress.ts';
import { ago, type Cell, type Column, table } from '../terminal/table.ts';
import { clean, oneLine } from '../terminal/words.ts';
import type { Output, Style } from '../verb.ts';

export const SHORT = 8;
export const OWNER = '_';
/** Narrower than this a table has no room for all columns. */
const NARROW = 64;

export const isOpen = ({ status }: TaskView): boolean => !isEnded(status);

/** A command that is shown so that it can be typed. */
export const taskCommand = (verb: string, id: string, instance: string | undefined): string =>
  `troupe task ${verb} ${clean(id).slice(0, SHORT)}${instance === undefined ? '' : ` --instance ${instance}`}`;

/** Ids shortened to a length at which no two of these tasks have the same one. */
export function shortIds(tasks: readonly TaskView[]): (id: string) => string {
  const ids = [...new Set(tasks.map(({ taskId }) => taskId))].sort();
  const alike = ids.map((id, index) => sameBeginning(id, ids[index - 1] ?? ''));
  const length = Math.max(SHORT, ...alike.map((count) => count + 1));
  return (id) => clean(id).slice(0, length);
}

function sameBeginning(one: string, other: string): number {
  let count = 0;
  while (count < other.length && one[count] === other[count]) count++;
  return count;
}

/** `queued` while nothing has been sent; else the words of MCP. */
export const statusText = ({ status, phase }: TaskView): string =>
  status === 'working' && phase === 'queued' ? 'queued' : oneLine(status);

export const styleOf = ({ status }: TaskView): Style => STYLES[status] ?? 'cyan';
const STYLES: Record<string, Style> = { completed: 'green', failed: 'red', cancelled: 'dim', input_required: 'yellow' };

/** `add of demo`. */
export const callText = ({ server, tool }: TaskView): string => `${oneLine(tool)} of ${oneLine(server)}`;

/** The task's progress, or its last status message. */
export function lastWord(task: TaskView, barWidth?: number): string {
  if (task.status === 'input_required') return 'needs an answer; see troupe inbox';
  if (isOpen(task) && task.progress) return barCell(task.progress, barWidth);
  return oneLine(task.statusMessage ?? '');
}

/** One line each, in the order they come. */
export function taskTable(output: Output, tasks: readonly TaskView[], now = Date.now()): string {
  const short = shortIds(tasks);
  const isNarrow = output.width < NARROW;
  const row = (task: TaskView): Cell[] => {
    const status = { text: statusText(task), style: styleOf(task) };
    const [server, tool] = [oneLine(task.server), oneLine(task.tool)];
    if (isNarrow) return [short(task.taskId), status, `${server}/${tool}`, lastWord(task, 4)];
    const age = ago(now - Date.parse(task.createdAt));
    return [short(task.taskId), server, tool, status, age, lastWord(task)];
  };
  return table(output, isNarrow ? NARROW_COLUMNS : COLUMNS, tasks.map(row));
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'SERVER', elastic: true },
  { title: 'TOOL', elastic: true },
  { title: 'STATUS' },
  { title: 'AGE', right: true },
  { title: 'PROGRESS', elastic: true },
];
const NARROW_COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'STATUS' },
  { title: 'TOOL', elastic: true },
  { title: 'PROGRESS', elastic: true },
];
