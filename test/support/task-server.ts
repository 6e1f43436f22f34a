// An MCP server over HTTP that keeps tasks of its own, bound to no session and no connection: whoever knows the id of one is
// told of it. Its tool `tally {id, ms}` notes the id in a file, as fixtures/tallies.mjs does, and is done after that time.

import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as later } from 'node:timers/promises';

type Kept = { taskId: string; status: string; createdAt: string; lastUpdatedAt: string; ttl: number };
type Params = { name?: string; arguments?: { id: string; ms?: number }; task?: { ttl?: number }; taskId?: string };

export async function taskServer(file: string) {
  const tasks = new Map<string, { task: Kept; done: Promise<object> }>();
  const found = ({ taskId = '' }: Params) => {
    const kept = tasks.get(taskId);
    if (!kept) throw Object.assign(new Error(`no task ${taskId}`), { code: -32602 });
    return kept;
  };

  function begin(done: Promise<object>, ttl = 60_000) {
    const now = new Date().toISOString();
    const task = { taskId: `kept-${tasks.size + 1}`, status: 'working', createdAt: now, lastUpdatedAt: now, ttl };
    const ended = done.then((result) => {
      if (task.status === 'working') task.status = 'completed';
      return result;
    });
    tasks.set(task.taskId, { task, done: ended });
    return { task: shown(task) };
  }

  const methods: Record<string, (params: Params & { protocolVersion?: string }) => unknown> = {
    initialize: ({ protocolVersion }) => ({
      ...{ protocolVersion, serverInfo: { name: 'keeps-tasks', version: '1' } },
      capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    }),
    ping: () => ({}),
    'tools/list': () => ({ tools: [TOOL] }),
    'tools/call': ({ arguments: { id, ms = 0 } = { id: '' }, task }) => {
      appendFileSync(file, `${id}\n`);
      const done = later(ms, { content: [{ type: 'text', text: id }] });
      return task ? begin(done, task.ttl) : done;
    },
    'tasks/get': (params) => shown(found(params).task),
    'tasks/result': (params) => found(params).done,
    'tasks/cancel': (params) => shown(Object.assign(found(params).task, { status: 'cancelled' })),
  };

  const server = createServer(async (req, res) => {
    if (req.method !== 'POST') return void res.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(await textOf(req));
    if (id === undefined) return void res.writeHead(202).end();
    const reply = await Promise.resolve()
      .then(() => (methods[method] ?? notFound)(params))
      .then(
        (result) => ({ result }),
        ({ code = -32603, message }) => ({ error: { code, message } }),
      );
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const TOOL = { name: 'tally', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } };
const shown = (task: Kept) => ({ ...task, pollInterval: 100 });

function notFound(): never {
  throw Object.assign(new Error('no such method'), { code: -32601 });
}

async function textOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) text += chunk;
  return text;
}
