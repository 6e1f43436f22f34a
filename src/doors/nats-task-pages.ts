// The list of tasks in pages that fit into a message of the bus. Where a page of the tasks themselves does not fit it ends
// earlier, and its cursor says in which page, and after which task, to go on: none is left out.

import type { TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Tasks } from '../tasks/task.ts';

/** `next` is where to go on, when there is more. */
export type TaskPage = { readonly page: Buffer; readonly next?: string };
type Place = { readonly cursor?: string; readonly after?: string };

const MAX_CURSOR = 512;
const SHORT_CHARACTERS = 200;

export function taskPage(
  tasks: Pick<Tasks, 'list'>,
  caller: string,
  given: string | undefined,
  maxBytes: number,
): TaskPage {
  const { cursor, after } = placeOf(given);
  const { tasks: views, next } = tasks.list(caller, cursor);
  // The task after which to go on may be gone meanwhile: then its page is told again rather than a part of it never.
  const rest = views.slice(views.findIndex(({ taskId }) => taskId === after) + 1);
  const texts = rest.map((view) => fitted(view, maxBytes - 2));
  const count = fitting(texts, maxBytes);
  const page = Buffer.from(`[${texts.slice(0, count).join()}]`);
  const last = rest[count - 1];
  if (last && count < rest.length) return { page, next: `${cursor ?? ''}${AFTER}${last.taskId}` };
  return { page, ...(next !== undefined && { next }) };
}

const AFTER = '~';

function placeOf(given: string | undefined): Place {
  if (given === undefined) return {};
  if (given.length > MAX_CURSOR)
    throw new TroupeError('invalid', 'cursor must be a Troupe-Next of an earlier page; leave it out to begin again');
  const at = given.lastIndexOf(AFTER);
  if (at < 0) return { cursor: given };
  return { ...(at > 0 && { cursor: given.slice(0, at) }), after: given.slice(at + 1) };
}

/** Without what a server says, and with no more than the beginning of a name, every task fits into every message. */
function fitted(view: TaskView, maxBytes: number): string {
  const text = JSON.stringify(view);
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const { statusMessage: _, progress: __, ...short } = view;
  return JSON.stringify({ ...short, tool: view.tool.slice(0, SHORT_CHARACTERS) });
}

/** At least one: an empty page would never end. */
function fitting(texts: readonly string[], maxBytes: number): number {
  let room = maxBytes - 1;
  const over = texts.findIndex((text) => {
    room -= Buffer.byteLength(text) + 1;
    return room < 0;
  });
  return over < 0 ? texts.length : Math.max(1, over);
}
