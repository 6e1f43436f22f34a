// A bare MCP server over HTTP that runs every call as a task of its own, and does what a test tells it to do with each: a
// board of tasks. Any method may be played otherwise; what it is sent is kept as it came.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FleetOptions } from '../../src/servers/fleet.ts';
import { eventually } from './eventually.ts';
import { events, json, listen, type RemoteSetup, remoteCast, type Script, scripted } from './remote.ts';

export type Task = {
  readonly taskId: string;
  status: string;
  statusMessage?: string | undefined;
  pollInterval?: number;
  /** Ends it: with that result, or with that error. */
  end(reply: { result: object } | { error: object }, status?: string): void;
  readonly ended: Promise<object>;
};
/** Returns the result; throws `refuse(…)` for an error; undefined is no answer. */
export type Method = (params: any, message: any, response: ServerResponse, task: Task | undefined) => unknown;
export type Board = {
  readonly methods?: Record<string, Method>;
  readonly capabilities?: object;
  readonly tools?: object[];
  readonly session?: Script['session'];
  /** Whether the session that a request names is forgotten. */
  readonly isGone?: (request: IncomingMessage) => boolean;
};

export const tool = (name: string, taskSupport?: string) => ({
  ...{ name, inputSchema: { type: 'object' } },
  ...(taskSupport && { execution: { taskSupport } }),
});
export const refuse = (code: number, message: string) => Object.assign(new Error(message), { code });
export const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
export const DONE = { result: text('done') };
const RUNS = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

export function taskBoard({ methods = {}, capabilities = RUNS, tools, session, isGone }: Board = {}) {
  const tasks: Task[] = [];
  const standing = new Set<ServerResponse>();
  const serverInfo = { name: 'board', version: '1' };

  function begin(taskId = `task-${tasks.length + 1}`): Task {
    const { promise, resolve } = deferred<object>();
    const task: Task = {
      ...{ taskId, status: 'working', ended: promise, pollInterval: 100 },
      end(reply, status = 'result' in reply ? 'completed' : 'failed') {
        task.status = status;
        resolve(reply);
      },
    };
    tasks.push(task);
    return task;
  }
  const find = (taskId: string): Task => {
    const task = tasks.find((each) => each.taskId === taskId);
    if (!task) throw refuse(-32602, `no task ${taskId}`);
    return task;
  };
  const views = ({ taskId, status, statusMessage, pollInterval }: Task) => ({
    ...{ taskId, status, statusMessage, pollInterval, ttl: 60_000, createdAt: '', lastUpdatedAt: '' },
  });
  const all: Record<string, Method> = {
    initialize: ({ protocolVersion }, _, response) => {
      const given = session ? session() : 'one';
      if (given) response.setHeader('mcp-session-id', given);
      return { protocolVersion, capabilities: { tools: {}, logging: {}, ...capabilities }, serverInfo };
    },
    'tools/list': () => ({ tools: tools ?? [tool('do', 'required'), tool('may', 'optional'), tool('no')] }),
    'tools/call': ({ task }) => (task ? { task: views(begin()) } : text('plain')),
    'tasks/get': ({ taskId }) => views(find(taskId)),
    'tasks/result': async ({ taskId }) => {
      const reply: any = await find(taskId).ended;
      if (reply.error) throw Object.assign(new Error(reply.error.message), reply.error);
      return reply.result;
    },
    'tasks/cancel': ({ taskId }) => views(Object.assign(find(taskId), { status: 'cancelled' })),
    ...methods,
  };

  async function play(message: any, response: ServerResponse): Promise<void> {
    const { id, method, params = {} } = message;
    const answer = (reply: object) => {
      const frame = { jsonrpc: '2.0', id, ...reply };
      if (response.headersSent) response.end(`data: ${JSON.stringify(frame)}\n\n`);
      else json(response, 200, frame);
    };
    try {
      const task = tasks.find((each) => each.taskId === params.taskId);
      const result = await all[method]?.(params, message, response, task);
      if (result !== undefined) answer({ result });
    } catch (error: any) {
      answer({ error: { code: error.code ?? -32603, message: error.message } });
    }
  }

  const handle = scripted({
    ...(session && { session }),
    first: ({ message, request, response }) => {
      if (message?.method !== 'initialize' && isGone?.(request)) return Boolean(response.writeHead(404).end());
      if (message?.id === undefined || !all[message.method]) return false;
      void play(message, response);
      return true;
    },
    get: (_, response) => void standing.add(events(response)),
  });
  return Object.assign(handle, {
    ...{ tasks, begin, views, standing },
    /** Says it on every standing stream. */
    say(message: object): void {
      for (const each of standing) each.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    },
    /** Says how a task is, unasked. */
    tell(task: Task, more: object = {}): void {
      this.say({ method: 'notifications/tasks/status', params: { ...views(task), ...more } });
    },
  });
}

/** A board and a fleet with it as its server `far`, whose tools are known. */
export async function boardCast(board: Board = {}, setup: RemoteSetup = {}, more: Partial<FleetOptions> = {}) {
  const handle = taskBoard(board);
  const web = await listen(handle);
  const far = await remoteCast(web.url, setup, more);
  await far.until('ready');
  await far.tools();
  return {
    ...{ handle, far, web },
    /** The params of every such request so far. */
    sent: (method: string): any[] => handle.of(method).map(({ params }) => params),
    /** The task that was begun as the so-and-so-manieth. */
    task: (index = 0): Promise<Task> =>
      soon(() => {
        const task = handle.tasks[index];
        if (!task) throw new Error(`there are ${handle.tasks.length} tasks`);
        return task;
      }),
    async [Symbol.asyncDispose]() {
      await far[Symbol.asyncDispose]();
      await web[Symbol.asyncDispose]();
    },
  };
}

/** With patience for a machine that has a lot to do. */
export const soon = <Value>(check: () => Value | Promise<Value>): Promise<Value> => eventually(check, 20_000);

export function deferred<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
