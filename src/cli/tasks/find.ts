// Tasks as the daemon lists them, page by page, and the task that is meant by the beginning of its id.

import type { TaskView } from '../../calls/call.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { elements, member, stringOf } from '../../protocol/json.ts';
import type { Control } from '../control.ts';
import { usage } from '../verb.ts';

/** `raw` holds the tasks as they came, each its own JSON. */
export type Page = {
  readonly version: number;
  readonly raw: readonly Buffer[];
  readonly tasks: readonly TaskView[];
  readonly next: string | undefined;
};

const SHORTEST = 4;
const WHOLE = 32;
/** An older task must be named by its whole id. */
const MOST_LOOKED_AT = 10_000;

/** Newest first. With `since` it waits until something has changed, or for some seconds. */
export async function pageOf(
  control: Control,
  where: { readonly since?: number; readonly cursor?: string } = {},
): Promise<Page> {
  const reply = await control.request('tasks', where).result;
  const raw = [...elements(member(reply, 'tasks') ?? Buffer.alloc(0))];
  const next = member(reply, 'next');
  return {
    version: Number(member(reply, 'version')?.toString()),
    raw,
    tasks: raw.map((each) => JSON.parse(each.toString())),
    next: next && stringOf(next),
  };
}

/** All pages from the newest on, each read when it is asked for. */
export async function* pages(control: Control): AsyncGenerator<Page> {
  for (let page = await pageOf(control); ; page = await pageOf(control, { cursor: page.next })) {
    yield page;
    if (page.next === undefined) return;
  }
}

/** A whole id is looked up by the daemon; the beginning of one is searched for here. */
export async function findTask(control: Control, id: string): Promise<TaskView> {
  if (id.length < SHORTEST) throw usage(`'${id}' is too short for an id; at least ${SHORTEST} characters tell which`);
  if (id.length >= WHOLE) return control.ask('taskGet', { id: id.toLowerCase() });
  const fitting: TaskView[] = [];
  let count = 0;
  for await (const { tasks, next } of pages(control)) {
    fitting.push(...tasks.filter(({ taskId }) => taskId.startsWith(id.toLowerCase())));
    count += tasks.length;
    if (next !== undefined && count >= MOST_LOOKED_AT) break;
  }
  const [task, another] = fitting;
  if (another) throw usage(`${fitting.length} tasks begin with ${id}; write more of the id`);
  if (task) return task;
  const among = count >= MOST_LOOKED_AT ? ` of the newest ${count}; write the whole id of an older one` : '';
  throw new TroupeError('unknownName', `no task begins with ${id}${among || '; `troupe tasks` lists them'}`);
}
