// Tasks as they change. Each look tells what is another than at the look before, also of a task that began and ended between
// them; and it costs the daemon one page, however many tasks have ended long ago.

import { setTimeout as wait } from 'node:timers/promises';
import type { TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Control } from './control.ts';
import { type Page, pageOf } from './task-find.ts';
import { isOpen } from './task-words.ts';

/** A task, and as the daemon wrote it. */
export type Told = { readonly task: TaskView; readonly raw: Buffer };
export type Look = {
  /** Oldest first: every one that is open, and those that ended last. */
  readonly tasks: readonly TaskView[];
  /** The first look has those that are open. */
  readonly changed: readonly Told[];
};

/** A busy daemon is asked this seldom. */
const QUIET_MS = 200;
const MOST_REMEMBERED = 200_000;

/** Each look waits until something has changed, or for some seconds; the signal ends the waiting between two of them. */
export function watchTasks(control: Control, signal: AbortSignal) {
  const seen = new Set<string>();
  let open = new Map<string, string>();
  let version: number | undefined;
  let restMs = 0;

  async function look(): Promise<Look> {
    if (version !== undefined) await wait(QUIET_MS + 2 * restMs, undefined, { signal });
    const isFirst = version === undefined;
    const first = await pageOf(control, version === undefined ? {} : { since: version });
    const at = performance.now();
    version = first.version;
    const listed = await newerThanSeen(first);
    const all = [...(await restOf(listed)), ...listed.reverse()];
    restMs = performance.now() - at;
    const changed = all.filter((each) => isNews(each, isFirst));
    for (const { task } of all) remember(task.taskId);
    open = new Map(all.filter(({ task }) => isOpen(task)).map(({ task, raw }) => [task.taskId, raw.toString()]));
    return { tasks: all.map(({ task }) => task), changed };
  }

  /** At first all there are; later down to the first that was seen, for below it there is nothing new. */
  async function newerThanSeen(first: Page): Promise<Told[]> {
    const told = toldOf(first);
    for (let page = first; page.next !== undefined; told.push(...toldOf(page))) {
      if (page.tasks.some(({ taskId }) => seen.has(taskId))) break;
      page = await pageOf(control, { cursor: page.next });
    }
    return told;
  }

  /** Those that were open and are too old for the pages that were read. */
  async function restOf(listed: readonly Told[]): Promise<Told[]> {
    const read = new Set(listed.map(({ task }) => task.taskId));
    const ids = [...open.keys()].filter((id) => !read.has(id));
    return (await Promise.all(ids.map((id) => again(control, id)))).flat();
  }

  const isNews = ({ task, raw }: Told, isFirst: boolean): boolean => {
    const before = open.get(task.taskId);
    if (before !== undefined) return before !== raw.toString();
    return !seen.has(task.taskId) && (!isFirst || isOpen(task));
  };

  function remember(id: string): void {
    seen.add(id);
    if (seen.size <= MOST_REMEMBERED) return;
    for (const oldest of seen) {
      seen.delete(oldest);
      break;
    }
  }

  return { look };
}

const toldOf = ({ tasks, raw }: Page): Told[] =>
  tasks.map((task, index) => ({ task, raw: raw[index] ?? Buffer.alloc(0) }));

/** Nothing if it was removed meanwhile. */
async function again(control: Control, id: string): Promise<Told[]> {
  try {
    const raw = await control.request('taskGet', { id }).result;
    return [{ raw, task: JSON.parse(raw.toString()) }];
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'unknownName') return [];
    throw error;
  }
}
