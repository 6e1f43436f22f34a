// `tasks`: the calls that outlive their callers, newest last; with `-f` as they change; and `tasks prune`, which removes the
// tasks that have ended.

import { setTimeout as wait } from 'node:timers/promises';
import type { TaskView } from '../../calls/call.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { type Control, withControl } from '../control.ts';
import { follow, isRedrawn, openScreen, type Show } from '../terminal/screen.ts';
import { cut } from '../terminal/table.ts';
import { type Cli, durationMs, OK, type Output, usage } from '../verb.ts';
import { type Page, pageOf, pages } from './find.ts';
import { callText, isOpen, lastWord, shortIds, statusText, taskTable } from './words.ts';

type TasksOptions = { readonly follow?: boolean; readonly all?: boolean; readonly older?: string };

const NONE = 'no tasks; `troupe call <server> <tool> --task` makes one';
/** A person does not read more than this. */
const MOST = 1_000;

export async function tasks(cli: Cli, verb: string | undefined, options: TasksOptions): Promise<number> {
  const { follow: isFollowed, all, older } = options;
  if (verb !== undefined && verb !== 'prune') throw usage(`tasks knows prune, not '${verb}'`);
  if (verb === undefined && older !== undefined) throw usage('--older goes with tasks prune');
  if (verb === 'prune' && (isFollowed || all))
    throw usage(`${isFollowed ? '-f' : '--all'} does not go with tasks prune`);
  const olderMs = older === undefined ? 0 : durationMs(older, '--older');
  return withControl(cli.paths.socket, (control) => {
    if (verb === 'prune') return prune(cli, control, olderMs);
    if (isFollowed) return followTasks(cli, control);
    return cli.output.json ? printAll(cli, control) : list(cli, control, all ? Number.POSITIVE_INFINITY : MOST);
  });
}

async function list({ output }: Cli, control: Control, most: number): Promise<number> {
  const found: TaskView[] = [];
  let hasMore = false;
  for await (const { tasks: some, next } of pages(control)) {
    hasMore = found.length + some.length > most || next !== undefined;
    found.push(...some.slice(0, most - found.length));
    if (found.length >= most) break;
  }
  if (found.length > 0) output.print(taskTable(output, found.reverse()));
  else output.say(NONE);
  if (hasMore) output.say(`these are the newest ${found.length}; \`troupe tasks --all\` lists every one`);
  return OK;
}

/** A program gets every task, as the daemon wrote it. */
async function printAll({ output }: Cli, control: Control): Promise<number> {
  const found: Buffer[] = [];
  for await (const { raw } of pages(control)) found.push(...raw);
  output.print(`[${found.reverse().join(',')}]`);
  return OK;
}

async function prune({ output }: Cli, control: Control, olderMs: number): Promise<number> {
  const raw = await control.request('tasksPrune', { olderMs }).result;
  const { removed } = JSON.parse(raw.toString()) as { removed: number };
  if (output.json) output.print(raw);
  else output.print(removed === 1 ? '1 task removed' : `${removed} tasks removed`);
  return OK;
}

const LONGEST_LINE = 400;

/** For eyes a table with bars that is redrawn in place, for pipes a line for each change, for programs a task a line. */
const followTasks = ({ output }: Cli, control: Control): Promise<number> =>
  follow(control, isRedrawn(output) ? screen(output) : lines(output), (signal) => looksAt(control, signal));

function lines(output: Output): Show<Look> {
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

function screen(output: Output): Show<Look> {
  let tasks: readonly TaskView[] | undefined;
  const { draw, end } = openScreen(output, (width, height) => {
    if (tasks === undefined) return []; // nothing is known yet
    if (tasks.length === 0) return [cut(NONE, width)];
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

/** Where the window is too low: open tasks before ended ones, and the newest before the others. */
function chosen(tasks: readonly TaskView[], room: number): readonly TaskView[] {
  const newest = [...tasks].reverse();
  const first = [...newest.filter(isOpen), ...newest.filter((task) => !isOpen(task))].slice(0, Math.max(0, room));
  return tasks.filter((task) => first.includes(task));
}

/** A task, and its JSON as the daemon wrote it. */
type Told = { readonly task: TaskView; readonly raw: Buffer };
type Look = {
  /** Oldest first: every open task, and those that ended last. */
  readonly tasks: readonly TaskView[];
  /** The tasks that differ from the look before; at the first look the open ones. */
  readonly changed: readonly Told[];
};

/** The pause between two looks at a busy daemon. */
const QUIET_MS = 200;
const MOST_REMEMBERED = 200_000;

/**
 * The tasks, each time something has changed. A task that began and ended between two looks is told too, and a look costs
 * the daemon one page, however many tasks have ended long ago. The signal ends the pause between two looks.
 */
async function* looksAt(control: Control, signal: AbortSignal): AsyncGenerator<Look> {
  const memory = createMemory();
  for (let since: { since?: number } = {}; ; ) {
    const first = await pageOf(control, since);
    const startedAt = performance.now();
    const listed = await newerThanSeen(control, first, memory);
    const all = [...(await tooOldForPages(control, listed, memory)), ...listed.reverse()];
    const tookMs = performance.now() - startedAt;
    yield { tasks: all.map(({ task }) => task), changed: memory.changedIn(all) };
    since = { since: first.version };
    await wait(QUIET_MS + 2 * tookMs, undefined, { signal });
  }
}

type Memory = ReturnType<typeof createMemory>;

/** Which tasks were seen at earlier looks, and how the open ones looked. */
function createMemory() {
  const seen = new Set<string>();
  let open = new Map<string, string>();
  let isEmpty = true;

  const hasChanged = ({ task, raw }: Told): boolean => {
    const before = open.get(task.taskId);
    if (before !== undefined) return before !== raw.toString();
    return !seen.has(task.taskId) && (!isEmpty || isOpen(task));
  };
  return {
    hasSeen: (id: string): boolean => seen.has(id),
    openIds: (): string[] => [...open.keys()],
    changedIn(all: readonly Told[]): Told[] {
      const changed = all.filter(hasChanged);
      for (const { task } of all) seen.add(task.taskId);
      for (const oldest of seen) {
        if (seen.size <= MOST_REMEMBERED) break;
        seen.delete(oldest);
      }
      open = new Map(all.filter(({ task }) => isOpen(task)).map(({ task, raw }) => [task.taskId, raw.toString()]));
      isEmpty = false;
      return changed;
    },
  };
}

/** The first look reads all pages; later ones read down to the first task that was seen, for below it nothing is new. */
async function newerThanSeen(control: Control, first: Page, { hasSeen }: Memory): Promise<Told[]> {
  const told = toldOf(first);
  for (let page = first; page.next !== undefined; told.push(...toldOf(page))) {
    if (page.tasks.some(({ taskId }) => hasSeen(taskId))) break;
    page = await pageOf(control, { cursor: page.next });
  }
  return told;
}

/** Tasks that were open at the last look and are too old for the pages that were read. */
async function tooOldForPages(control: Control, listed: readonly Told[], { openIds }: Memory): Promise<Told[]> {
  const read = new Set(listed.map(({ task }) => task.taskId));
  const ids = openIds().filter((id) => !read.has(id));
  return (await Promise.all(ids.map((id) => again(control, id)))).flat();
}

const toldOf = ({ tasks, raw }: Page): Told[] =>
  tasks.map((task, index) => ({ task, raw: raw[index] ?? Buffer.alloc(0) }));

/** The task as it is now; nothing if it was removed meanwhile. */
async function again(control: Control, id: string): Promise<Told[]> {
  try {
    const raw = await control.request('taskGet', { id }).result;
    return [{ raw, task: JSON.parse(raw.toString()) }];
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'unknownName') return [];
    throw error;
  }
}
