// The tasks of one session's host: calls that it makes as tasks, and what it wants to know of them. A task is its
// principal's, so any session of his may look; it goes on when the session that made it has ended.

import { setTimeout as wait } from 'node:timers/promises';
import type { TaskView } from '../calls/call.ts';
import { notificationFrame } from '../protocol/compose.ts';
import { withoutMember } from '../protocol/edit.ts';
import { codecOf } from '../protocol/eras.ts';
import { TroupeError } from '../protocol/failures.ts';
import { member, stringOf } from '../protocol/json.ts';
import { isSentBy } from '../protocol/methods.ts';
import { IDEMPOTENCY_KEY, IMMEDIATE_RESPONSE, isAugmented, requestedTtl, taskOf } from '../protocol/tasks.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { TaskNews } from '../tasks/task.ts';
import { type Beginning, type CallsOptions, progressParams } from './calls.ts';
import type { Viewer } from './scopes.ts';
import { targetOf } from './targets.ts';
import { createWaiting, related } from './task-results.ts';

const LOOK_MS = 1_000;

export type TasksOptions = CallsOptions & {
  readonly viewer: Viewer;
  /** For what belongs to no request that is open; nobody may be there to read it. */
  readonly deliver: (frame: Buffer) => void;
  readonly hasListener: () => boolean;
};
export type SessionTasks = ReturnType<typeof createTasks>;

export function createTasks({ world, identity, view, questions, isLoud, viewer, deliver, hasListener }: TasksOptions) {
  const { id: session, principal, door, era } = identity;
  const { tasks } = world;
  const waiting = createWaiting({ world, identity, questions });

  /** The result is a CreateTaskResult, once the task is on the disk. */
  async function create(given: Buffer): Promise<Buffer> {
    const ttlMs = requestedTtl(given);
    const { server, name, params } = targetOf(view(), 'tools/call', withoutMember(given, 'task'));
    if (world.scopes.taskSupport(viewer, server, name) === 'forbidden')
      throw new TroupeError(
        'unsupported',
        `the tool ${shown(name)} of ${server} cannot run as a task; call it without one`,
      );
    const key = keyOf(params);
    const made = await tasks.create({
      ...{ principal, door, server, tool: name, params, session, canAnswer: questions.canAnswer },
      ...(ttlMs !== undefined && { ttlMs }),
      ...(key !== undefined && { key }),
    });
    return json({ task: taskOf(made), _meta: { [IMMEDIATE_RESPONSE]: meanwhile(made) } });
  }

  async function list(params: Buffer): Promise<Buffer> {
    const cursor = member(params, 'cursor');
    const text = cursor && stringOf(cursor);
    if (cursor && text === undefined) throw new TroupeError('invalid', 'the cursor must be the text of a nextCursor');
    const { tasks: page, next } = tasks.list(principal, text);
    return json({ tasks: page.map(taskOf), ...(next !== undefined && { nextCursor: next }) });
  }

  /** The frame of what has happened, if this host wants to know it. */
  function frameOf({ task, signal, progressToken: token }: Omit<TaskNews, 'session'>): Buffer | undefined {
    if (!signal) return notificationFrame('notifications/tasks/status', json(taskOf(task)));
    if (signal.type === 'log')
      return isLoud(task.server, signal.level)
        ? notificationFrame('notifications/message', related(signal.params, task.taskId))
        : undefined;
    const params = token === undefined ? undefined : progressParams(era, signal, token);
    return params && notificationFrame('notifications/progress', related(params, task.taskId));
  }

  const isWorking = (): boolean =>
    world.fleet
      .members()
      .some(({ principal: whose, lane }) => whose === sessionHolder(session) && lane.inFlight + lane.queued > 0);

  return {
    /** Whether this call shall be a task. Who knows no tasks cannot want one. */
    isWanted: (params: Buffer): boolean => codecOf(era).hasTasks && isAugmented(params),
    create,
    /** The result, unless it is waited for and brought later. */
    perform(method: string, params: Buffer, beginning: Beginning): Promise<Buffer> | undefined {
      switch (isSentBy('client', method, era) ? method : '') {
        case 'tasks/get':
          return Promise.resolve(json(taskOf(tasks.get(idIn(params), principal))));
        case 'tasks/list':
          return list(params);
        case 'tasks/cancel':
          return tasks.cancel(idIn(params), principal).then((task) => json(taskOf(task)));
        case 'tasks/result':
          return void waiting.begin(idIn(params), beginning);
        default:
          throw new TroupeError('unsupported', `troupe does not know the method ${method.slice(0, 60)}`);
      }
    },
    /** On the line of who waits for that task, so that it is seen where there is no other stream. */
    tell(news: Omit<TaskNews, 'session'>): void {
      const line = waiting.lineFor(news.task.taskId);
      const frame = line || hasListener() ? frameOf(news) : undefined;
      if (frame && line) line.tell(frame);
      else if (frame) deliver(frame);
    },
    /** Resolves when no process that this session has alone works on a task: it would be lost with the process. */
    async untilEnded(): Promise<void> {
      while (isWorking()) await wait(LOOK_MS, undefined, { ref: false });
    },
    /** Waits no longer; the task goes on. False when no such request waits here. */
    leave: waiting.leave,
    leaveAll: waiting.leaveAll,
    get waiting() {
      return waiting.count;
    },
  };
}

function idIn(params: Buffer): string {
  const value = member(params, 'taskId');
  const id = value && stringOf(value);
  if (id === undefined) throw new TroupeError('invalid', 'taskId must be the id of a task');
  return id;
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

const shown = (tool: string): string => tool.slice(0, 128);
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
