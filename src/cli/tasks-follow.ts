// `tasks -f`: the tasks as they go on. For eyes a table with bars that stays where it is, for pipes a line for each change, for
// programs a task a line. Ctrl-C ends it and is no failure.

import type { TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Control } from './control.ts';
import type { Output } from './output.ts';
import { cut } from './table.ts';
import { callText, isOpen, lastWord, shortIds, statusText, taskTable } from './task-words.ts';
import { openScreen } from './tasks-screen.ts';
import { type Look, type Told, watchTasks } from './tasks-watch.ts';
import { type Cli, OK } from './verb.ts';

type Show = { readonly update: (look: Look) => void; readonly end: () => void };

const LONGEST_LINE = 400;

/** `none` is what stands there while there are no tasks. */
export async function followTasks({ output }: Cli, control: Control, none: string): Promise<number> {
  const isRedrawn = output.isTerminal && !output.json && process.env.TERM !== 'dumb';
  const show = isRedrawn ? screen(output, none) : lines(output);
  const leaving = new AbortController();
  const stop = (): void => {
    leaving.abort();
    control.close();
  };
  process.on('SIGINT', stop);
  try {
    for (const watch = watchTasks(control, leaving.signal); ; ) show.update(await watch.look());
  } catch (error) {
    if (leaving.signal.aborted) return OK;
    if (error instanceof TroupeError && error.code === 'lost')
      throw new TroupeError('unavailable', 'troupe has stopped; start it with `troupe up`, and follow again');
    throw error;
  } finally {
    process.off('SIGINT', stop);
    show.end();
  }
}

function lines(output: Output): Show {
  const update = ({ tasks, changed }: Look): void => {
    const short = shortIds(tasks);
    for (const each of changed) output.print(output.json ? each.raw : lineOf(each, short));
  };
  return { update, end: () => {} };
}

function lineOf({ task }: Told, short: (id: string) => string): string {
  const word = lastWord(task);
  const line = `${short(task.taskId)} ${statusText(task)} ${callText(task)}${word && `: ${word}`}`;
  return `${new Date().toTimeString().slice(0, 8)} ${cut(line, LONGEST_LINE)}`;
}

function screen(output: Output, none: string): Show {
  let tasks: readonly TaskView[] | undefined;
  const { draw, end } = openScreen((width, height) => {
    if (tasks === undefined) return []; // nothing is known yet
    if (tasks.length === 0) return [cut(none, width)];
    const room = height - 1;
    const shown = tasks.length > room ? chosen(tasks, room - 1) : tasks;
    const rest = tasks.length - shown.length;
    const more = rest > 0 ? [output.paint('dim', cut(`… ${rest} more; \`troupe tasks\` lists them`, width))] : [];
    return [...taskTable({ ...output, width }, shown).split('\n'), ...more];
  });
  const update = (look: Look): void => {
    tasks = look.tasks;
    draw();
  };
  return { update, end };
}

/** What still goes on comes before what has ended, and the newest before the others. */
function chosen(tasks: readonly TaskView[], room: number): readonly TaskView[] {
  const newest = [...tasks].reverse();
  const first = [...newest.filter(isOpen), ...newest.filter((task) => !isOpen(task))].slice(0, Math.max(0, room));
  const kept = new Set(first);
  return tasks.filter((task) => kept.has(task));
}
