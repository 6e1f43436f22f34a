// Lists of questions and tasks as messages of the bus. A page holds whole entries; one that is too large loses its details
// before another page is begun, and says so. A cursor is a place between entries, so that it holds when they go meanwhile.

import type { AskView } from '../../asks/ask.ts';
import type { TaskView } from '../../calls/call.ts';
import { TroupeError } from '../../protocol/failures.ts';
import type { Tasks } from '../../tasks/task.ts';
import type { Page } from './responder.ts';

const DETAILS = ['schema', 'arguments', 'request', 'result', 'url'] as const;
const SHORT_CHARACTERS = 200;
const MAX_CURSOR = 512;

/** Every open question while that is possible at all: the largest ones lose their details first. */
export function askPage(asks: readonly AskView[], cursor: string | undefined, maxBytes: number): Page {
  const rest = [...asks].sort(byAge).filter((ask) => cursor === undefined || isAfter(ask, cursor));
  const entries = rest.map((ask) => ({ ask, text: JSON.stringify(ask) }));
  let size = entries.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 1);
  for (const entry of [...entries].sort((a, b) => Buffer.byteLength(b.text) - Buffer.byteLength(a.text))) {
    if (size <= maxBytes) break;
    const short = JSON.stringify(withoutDetails(entry.ask));
    size -= Buffer.byteLength(entry.text) - Buffer.byteLength(short);
    entry.text = short;
  }
  const { page, count } = filled(
    entries.map(({ text }) => text),
    maxBytes,
  );
  const last = rest[count - 1];
  return last && count < rest.length ? { page, next: `${last.openedAt}.${last.id}` } : { page };
}

/** A page of the tasks, or the part of it that fits; the cursor then says in which page, and after which task, to go on. */
export function taskPage(
  tasks: Pick<Tasks, 'list'>,
  caller: string,
  given: string | undefined,
  maxBytes: number,
): Page {
  const { cursor, after } = taskCursor(given);
  const { tasks: views, next } = tasks.list(caller, cursor);
  // The task after which to go on may be gone meanwhile: then its page is told again rather than a part of it never.
  const rest = views.slice(views.findIndex(({ taskId }) => taskId === after) + 1);
  const texts = rest.map((view) => fitted(view, maxBytes - 2));
  const { page, count } = filled(texts, maxBytes);
  const last = rest[count - 1];
  if (last && count < rest.length) return { page, next: `${cursor ?? ''}${AFTER}${last.taskId}` };
  return { page, ...(next !== undefined && { next }) };
}

/** The array of as many entries as fit, and how many those are: at least one, for an empty page would never end. */
function filled(texts: readonly string[], maxBytes: number): { page: Buffer; count: number } {
  let room = maxBytes - 1;
  const over = texts.findIndex((text) => {
    room -= Buffer.byteLength(text) + 1;
    return room < 0;
  });
  const count = over < 0 ? texts.length : Math.max(1, over);
  return { page: Buffer.from(`[${texts.slice(0, count).join()}]`), count };
}

/** `cut` names what is missing, so that nobody takes a form for one without fields. */
function withoutDetails(ask: AskView): object {
  const [message, tool] = [ask.message.slice(0, SHORT_CHARACTERS), ask.tool.slice(0, SHORT_CHARACTERS)];
  const gone = DETAILS.filter((detail) => ask[detail] !== undefined);
  const cut = [...gone, ...(message === ask.message ? [] : ['message']), ...(tool === ask.tool ? [] : ['tool'])];
  const rest = Object.fromEntries(Object.entries(ask).filter(([key]) => !gone.includes(key as never)));
  return { ...rest, message, tool, cut };
}

const byAge = (a: AskView, b: AskView): number => a.openedAt - b.openedAt || (a.id < b.id ? -1 : 1);

function isAfter(ask: AskView, cursor: string): boolean {
  const [, openedAt, id] = /^(\d{1,16})\.([\w-]{1,64})$/.exec(cursor) ?? [];
  if (openedAt === undefined || id === undefined) throw wrongCursor();
  return ask.openedAt > Number(openedAt) || (ask.openedAt === Number(openedAt) && ask.id > id);
}

const AFTER = '~';

function taskCursor(given: string | undefined): { readonly cursor?: string; readonly after?: string } {
  if (given === undefined) return {};
  if (given.length > MAX_CURSOR) throw wrongCursor();
  const at = given.lastIndexOf(AFTER);
  if (at < 0) return { cursor: given };
  return { ...(at > 0 && { cursor: given.slice(0, at) }), after: given.slice(at + 1) };
}

const wrongCursor = (): TroupeError =>
  new TroupeError('invalid', 'cursor must be a Troupe-Next of an earlier page; leave it out to begin again');

/** Without what a server says, and with no more than the beginning of a name, every task fits into every message. */
function fitted(view: TaskView, maxBytes: number): string {
  const text = JSON.stringify(view);
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const { statusMessage: _, progress: __, ...short } = view;
  return JSON.stringify({ ...short, tool: view.tool.slice(0, SHORT_CHARACTERS) });
}
