// How a host process reaches troupe: over NATS, or with the official SDK over HTTP, through whichever daemon answers. An
// answer is `{task, status}`, `{outcome}`, `{code, delivery}` of a failure, or `{isSilent}` when there was none.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { connect, headers } from 'nats';
import { z } from 'zod';

const ANSWER_MS = 5_000;
const TTL_MS = 3_600_000;
const SILENT = { isSilent: true };

export const doors = { nats: natsDoor, http: httpDoor };

const seen = ({ taskId, status }) => ({ task: taskId, status });
const outcomeOf = ({ content }) => ({ outcome: content?.[0]?.text ?? 'nothing' });
/** A failure that says nothing of delivery is none of troupe's: the client's own, or the broker's. */
const failureOf = (error) => {
  const { code, delivery } = error?.data?.troupe ?? {};
  return delivery ? { code, delivery, message: error.message } : SILENT;
};

// ── NATS ─────────────────────────────────────────────────────────────────────

async function natsDoor({ servers, token, tree }) {
  const nc = await connect({ servers, token, maxReconnectAttempts: -1, reconnectTimeWait: 50 });

  async function ask(subject, read, body = '', more = {}) {
    const all = headers();
    for (const [name, value] of Object.entries(more)) all.set(name, value);
    try {
      const msg = await nc.request(`${tree}.${subject}`, body, { timeout: ANSWER_MS, headers: all });
      const data = JSON.parse(msg.string());
      return msg.headers?.get('Nats-Service-Error-Code') ? failureOf(data) : read(data);
    } catch {
      return SILENT; // nobody there, or no answer in time
    }
  }

  return {
    create: ({ id, server, ms, key }) =>
      ask(`call.${server}.tally`, seen, JSON.stringify({ id, ms }), {
        'Troupe-Task': '1',
        ...(key && { 'Troupe-Idempotency-Key': key }),
      }),
    get: (task) => ask(`task.get.${task}`, seen),
    result: (task) => ask(`task.result.${task}`, outcomeOf),
    cancel: (task) => ask(`task.cancel.${task}`, seen),
  };
}

// ── HTTP ─────────────────────────────────────────────────────────────────────

async function httpDoor({ urls, bearer }) {
  const clients = new Map();
  let turn = 0;

  async function enter(url) {
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: bearer ? { headers: { authorization: `Bearer ${bearer}` } } : {},
    });
    const client = new Client({ name: 'chaos', version: '1' });
    client.onerror = () => {}; // what matters is told to whoever asked
    await client.connect(transport, { timeout: ANSWER_MS });
    return client;
  }

  /** Each question goes to the next daemon. One that does not answer is met afresh the next time. */
  async function ask(method, params, read) {
    const url = urls[turn++ % urls.length];
    const client = clients.get(url) ?? enter(url);
    clients.set(url, client);
    try {
      return read(await (await client).request({ method, params }, z.looseObject({}), { timeout: ANSWER_MS }));
    } catch (error) {
      const failure = failureOf(error);
      if (failure === SILENT && clients.get(url) === client) {
        clients.delete(url);
        void client.then((each) => each.close()).catch(() => {}); // it was never there
      }
      return failure;
    }
  }

  return {
    create: ({ id, server, ms, key }) =>
      ask(
        'tools/call',
        {
          ...{ name: `${server}__tally`, arguments: { id, ms }, task: { ttl: TTL_MS } },
          ...(key && { _meta: { 'troupe/idempotency-key': key } }),
        },
        ({ task }) => seen(task),
      ),
    get: (taskId) => ask('tasks/get', { taskId }, seen),
    result: (taskId) => ask('tasks/result', { taskId }, outcomeOf),
    cancel: (taskId) => ask('tasks/cancel', { taskId }, seen),
  };
}
