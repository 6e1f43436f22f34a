// The tasks of one session's host: calls that it makes as tasks, and requests that ask how tasks go or wait for what they come
// to. A task is its principal's, so any session of that principal may look, and it goes on when its session has ended.

import type { Ask, Asking, Outcome, TaskView } from '../calls/call.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { withMeta, withoutMember, withoutMeta } from '../protocol/edit.ts';
import { codecOf } from '../protocol/eras.ts';
import { errorObject, TroupeError } from '../protocol/failures.ts';
import { member, stringOf } from '../protocol/json.ts';
import { isSentBy } from '../protocol/methods.ts';
import {
  IDEMPOTENCY_KEY,
  IMMEDIATE_RESPONSE,
  isAugmented,
  RELATED_TASK,
  requestedTtl,
  taskOf,
} from '../protocol/tasks.ts';
import type { TaskNews } from '../tasks/task.ts';
import { type Beginning, type CallsOptions, named } from './calls.ts';
import type { Line } from './host.ts';
import type { OpenLine } from './questions.ts';
import type { Viewer } from './scopes.ts';
import { errorOf, targetOf } from './targets.ts';
import { progressParams } from './telling.ts';

export type HostTasksOptions = Omit<CallsOptions, 'interests' | 'ready' | 'hearsLogs'> & {
  readonly viewer: Viewer;
  /** For messages that belong to no open request. */
  readonly deliver: (frame: Buffer) => void;
  readonly hasListener: () => boolean;
};
export type HostTasks = ReturnType<typeof createHostTasks>;
type News = Omit<TaskNews, 'session'>;

export function createHostTasks(options: HostTasksOptions) {
  const { ports, identity, deliver, hasListener } = options;
  const { principal, era } = identity;
  const { tasks } = ports;
  const waiting = createWaiting(options);

  function list(params: Buffer): Buffer {
    const cursor = member(params, 'cursor');
    const text = cursor && stringOf(cursor);
    if (cursor && text === undefined) throw new TroupeError('invalid', 'the cursor must be the text of a nextCursor');
    const { tasks: page, next } = tasks.list(principal, text);
    return json({ tasks: page.map(taskOf), ...(next !== undefined && { nextCursor: next }) });
  }

  return {
    /** Whether this call shall be a task. A host of a version without tasks cannot want one. */
    isWanted: (params: Buffer): boolean => codecOf(era).hasTasks && isAugmented(params),
    create: (params: Buffer): Promise<Buffer> => create(options, params),
    /** The result of the request, unless the request waits and is answered later. */
    perform(method: string, params: Buffer, beginning: Beginning): Promise<Buffer> | undefined {
      switch (isSentBy('client', method, era) ? method : '') {
        case 'tasks/get':
          return Promise.resolve(json(taskOf(tasks.get(idIn(params), principal))));
        case 'tasks/list':
          return Promise.resolve(list(params));
        case 'tasks/cancel':
          return tasks.cancel(idIn(params), principal).then((task) => json(taskOf(task)));
        case 'tasks/result':
          return void waiting.begin(idIn(params), beginning);
        default:
          throw new TroupeError('unsupported', `troupe does not know the method ${method.slice(0, 60)}`);
      }
    },
    /** On the line of the request that waits for the task, so that it is heard where there is no other stream. */
    tell(news: News): void {
      const line = waiting.lineFor(news.task.taskId);
      const frame = line || hasListener() ? newsFrame(options, news) : undefined;
      if (frame && line) line.tell(frame);
      else if (frame) deliver(frame);
    },
    /** Ends the waiting, not the task. False when no such request waits here. */
    leave: waiting.leave,
    leaveAll: waiting.leaveAll,
  };
}

// ── Making one ───────────────────────────────────────────────────────────────

/** The result is a CreateTaskResult, once the task is on the disk. */
async function create({ ports, identity, questions, view, viewer }: HostTasksOptions, given: Buffer): Promise<Buffer> {
  const { id: session, principal, door } = identity;
  const ttlMs = requestedTtl(given);
  const { server, name, params } = targetOf(view(), 'tools/call', withoutMember(given, 'task'));
  if (ports.scopes.taskSupport(viewer, server, name) === 'forbidden')
    throw new TroupeError(
      'unsupported',
      `the tool ${shown(name)} of ${server} cannot run as a task; call it without one`,
    );
  const key = keyOf(params);
  const made = await ports.tasks.create({
    principal,
    door,
    server,
    tool: name,
    params,
    session,
    canAnswer: questions.canAnswer,
    ...(ttlMs !== undefined && { ttlMs }),
    ...(key !== undefined && { key }),
  });
  return json({ task: taskOf(made), _meta: { [IMMEDIATE_RESPONSE]: meanwhile(made) } });
}

function keyOf(params: Buffer): string | undefined {
  const meta = member(params, '_meta');
  const value = meta && member(meta, IDEMPOTENCY_KEY);
  const key = value && stringOf(value);
  if (value && !key) throw new TroupeError('invalid', `_meta["${IDEMPOTENCY_KEY}"] must be a text`);
  return key;
}

/** What the model is told in place of a result. */
const meanwhile = ({ taskId, server, tool }: TaskView): string =>
  `The tool ${shown(tool)} of ${server} runs in the background as task ${taskId}. There is no result yet: ` +
  'tasks/get says how it goes, tasks/result waits for what it returns, and other work need not wait.';

// ── Telling ──────────────────────────────────────────────────────────────────

/** The message that tells what has happened, if this host wants to know it. */
function newsFrame(options: HostTasksOptions, { task, signal, progressToken: token }: News): Buffer | undefined {
  if (!signal) return notificationFrame('notifications/tasks/status', json(taskOf(task)));
  if (signal.type === 'log')
    return options.isLoud(task.server, signal.level)
      ? notificationFrame('notifications/message', related(signal.params, task.taskId))
      : undefined;
  // That somebody is asked is its status, which its host is told of.
  if (token === undefined || signal.type === 'ask') return undefined;
  const params = progressParams(options.identity.era, signal, token);
  return notificationFrame('notifications/progress', related(params, task.taskId));
}

// ── Waiting for a result ─────────────────────────────────────────────────────

/** One `tasks/result` that is not answered yet. */
type Waiter = {
  readonly task: string;
  readonly open: OpenLine;
  readonly leaving: AbortController;
  /** The questions on its line that are not answered. */
  readonly askings: Set<Asking>;
};

/** More than any host has tasks. */
const MAX_WAITING = 10_000;

/** While a request waits, what its task asks is asked on its line; when the host leaves, only the waiting is over. */
function createWaiting({ ports, identity, presence, questions }: HostTasksOptions) {
  const { principal, scope } = identity;
  const waiters = new Map<string, Waiter>();
  const byTask = new Map<string, Waiter>();

  function begin(task: string, { id, line }: Beginning): void {
    const { server } = ports.tasks.get(task, principal);
    if (waiters.has(id)) throw new TroupeError('invalid', `a request with the id ${id.slice(0, 64)} is in flight`);
    if (waiters.size >= MAX_WAITING)
      throw new TroupeError('busy', `${MAX_WAITING} requests of the session wait for tasks; wait for one of them`);
    const open = { line, isOpen: true };
    const waiter: Waiter = { task, open, leaving: new AbortController(), askings: new Set() };
    const { signal } = waiter.leaving;
    waiters.set(id, waiter);
    byTask.set(task, waiter);
    presence.enter();
    ports.attend({ task, principal, signal, onAsk: (ask) => asked(waiter, server, ask) });
    ports.tasks.outcome(task, principal, signal).then(
      (outcome) => end(id, waiter, outcomeFrame(id, task, outcome)),
      (error) => end(id, waiter, errorFrame(id, errorOf(error))),
    );
  }

  /** At an endpoint that is not that server's alone, the words of the question say whose they are. */
  function asked({ task, open, leaving, askings }: Waiter, server: string, ask: Ask): Asking | undefined {
    const words = scope === server ? ask : named(server, ask);
    if (!words || leaving.signal.aborted) return undefined;
    const answer: Ask['answer'] = (given) => {
      if (asking) askings.delete(asking);
      ask.answer(given.ok ? { ok: true, result: withoutMeta(given.result, RELATED_TASK) } : given);
    };
    const asking = questions.ask(open, { ...words, params: related(words.params, task), answer });
    if (asking) askings.add(asking);
    return asking;
  }

  /** Open questions are withdrawn before the answer, while the line can still carry that. */
  function end(id: string, waiter: Waiter, answer: Buffer): void {
    const { task, open, leaving, askings } = waiter;
    waiters.delete(id);
    if (byTask.get(task) === waiter) byTask.delete(task);
    leaving.abort();
    for (const asking of askings) asking.withdraw();
    open.isOpen = false;
    presence.leave();
    open.line.answer(answer);
  }

  function leave(id: string, why = 'the caller cancelled it'): boolean {
    const waiter = waiters.get(id);
    waiter?.leaving.abort(new TroupeError('cancelled', `${why}; the task goes on`));
    return waiter !== undefined;
  }

  return {
    begin,
    leave,
    leaveAll(why: string): void {
      for (const id of [...waiters.keys()]) leave(id, why);
    },
    lineFor: (task: string): Line | undefined => byTask.get(task)?.open.line,
  };
}

/** Exactly the answer that the call would have had, and the id of its task. */
function outcomeFrame(id: string, task: string, outcome: Outcome): Buffer {
  if (!outcome.ok) return errorFrame(id, errorObject(outcome.failure));
  return resultFrame(id, related(outcome.result, task));
}

/** The task's id for the host replaces an id of the server's own in the same place. */
const related = (object: Buffer, taskId: string): Buffer => withMeta(object, RELATED_TASK, JSON.stringify({ taskId }));

function idIn(params: Buffer): string {
  const value = member(params, 'taskId');
  const id = value && stringOf(value);
  if (id === undefined) throw new TroupeError('invalid', 'taskId must be the id of a task');
  return id;
}

const shown = (tool: string): string => tool.slice(0, 128);
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
