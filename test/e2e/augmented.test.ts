// A server of the official SDK that asks its questions as tasks, over a pipe and over HTTP, at a real daemon: people, hosts,
// services and rules answer them like any other question, and the server fetches what they said.

import { randomUUID } from 'node:crypto';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { augmentServer } from '../fixtures/augment-server.mjs';
import { answeringHost } from '../support/answering-host.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { bodyOf, listen } from '../support/remote.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const FORM = {
  message: 'Who are you?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string', default: 'nobody' } }, required: ['name'] },
};
const SAMPLING = { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 10 };
const MESSAGE = { role: 'assistant', model: 'service', content: { type: 'text', text: 'hello' } };

let web: Awaited<ReturnType<typeof listen>>;
let d: Daemon;
beforeAll(async () => {
  web = await listen(overHttp());
  d = await daemon({
    servers: {
      piped: fixture('augment-sdk', { trust: true }),
      far: { type: 'http', url: web.url, 'x-troupe': { trust: true } },
      ruled: fixture('augment-sdk'),
    },
    troupe: { http: { address: '127.0.0.1:0' }, asks: { rules: [{ server: 'ruled', answer: 'defaults' }] } },
  });
}, 60_000);
afterAll(async () => {
  const warnings = (await d?.log())?.split('\n').filter((line) => /"level":[456]0/.test(line));
  await d?.[Symbol.asyncDispose]();
  await web?.[Symbol.asyncDispose]();
  expect(warnings).toEqual([]);
});

/** Each session has a server of its own, as the examples of the SDK have it. */
function overHttp() {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  return async (request: any, response: any) => {
    const known = sessions.get(String(request.headers['mcp-session-id'] ?? ''));
    const body = request.method === 'POST' ? await bodyOf(request) : undefined;
    const transport: StreamableHTTPServerTransport =
      known ??
      new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
    if (!known) await augmentServer().connect(transport as any);
    await transport.handleRequest(request, response, body);
  };
}

type Asking = { kind?: 'sampling'; params?: object; task?: object; cancels?: boolean };
const ask = async (server: string, { params = FORM, task = {}, ...rest }: Asking): Promise<any[]> => {
  const { data } = await d.request(`troupe.call.${server}.ask`, { params, task, ...rest }, { timeout: 60_000 });
  return data.structuredContent.value;
};
const theAsk = () =>
  eventually(async () => {
    const [view, another] = (await d.request('troupe.inbox')).data as AskView[];
    if (view?.waitsOn !== 'inbox' || another) throw new Error('not one question waits for a person');
    return view;
  }, 20_000);
/** The task as it was made, as it was seen last, and what came of it. */
const story = (seen: any[]) => {
  const last = seen.findLast(({ type }) => type === 'taskStatus')?.task;
  return { made: seen[0]?.task, last, end: seen.at(-1) };
};

describe.each(['piped', 'far'])('a server that is %s', (server) => {
  it('has its question answered by the host of the call, which knows of no task', async () => {
    await using host = await answeringHost('v1', `${await d.http()}/mcp/${server}`, 'Ada');
    const { structuredContent } = await host.call('ask', { params: FORM, task: { ttl: 60_000 } });
    const { made, last, end } = story(structuredContent.value);
    expect(made).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: 1_000 });
    expect(last).toMatchObject({ taskId: made.taskId, status: 'completed' });
    expect(end.result).toMatchObject({ action: 'accept', content: { name: 'Ada' } });
    expect(end.result._meta[RELATED]).toEqual({ taskId: made.taskId });
    expect(host.asked('elicitation/create')).toEqual([{ method: 'elicitation/create', mode: 'form', ...FORM }]);
  }, 60_000);

  it('has it answered by a person at the inbox, or declined', async () => {
    for (const [reply, result] of [
      [
        { action: 'accept', content: { name: 'Bo' } },
        { action: 'accept', content: { name: 'Bo' } },
      ],
      [{ action: 'decline' }, { action: 'decline' }],
    ]) {
      const asking = ask(server, {});
      const { id } = await theAsk();
      expect((await d.request(`troupe.answer.${id}`, reply as object)).code).toBeUndefined();
      const { last, end } = story(await asking);
      expect([last.status, end.result]).toMatchObject(['completed', result as object]);
    }
  }, 60_000);

  it('cancels it, and nobody is asked any more', async () => {
    const { last, end } = story(await ask(server, { cancels: true }));
    expect([last.status, end.error.message]).toEqual(['cancelled', expect.stringContaining('was cancelled')]);
    expect((await d.request('troupe.inbox')).data).toEqual([]);
  }, 60_000);

  it('hears a cancel when nobody answered in time', async () => {
    const { last, end } = story(await ask(server, { task: { ttl: 12_000 } }));
    expect([last.status, end.result]).toMatchObject(['completed', { action: 'cancel' }]);
  }, 60_000);

  it('has a service speak for a model, and hears an error when a person says no', async () => {
    const nc = await d.nats();
    const asked: any[] = [];
    const service = nc.subscribe(`troupe.ask.*.sampling.${server}`, {
      callback: (_, msg) => {
        asked.push(msg.json());
        msg.respond(JSON.stringify(asked.length === 1 ? MESSAGE : { action: 'pass' }));
      },
    });
    await nc.flush();
    const said = story(await ask(server, { kind: 'sampling', params: SAMPLING }));
    expect([said.last.status, said.end.result]).toMatchObject(['completed', MESSAGE]);
    expect(asked[0].request).toEqual(SAMPLING);
    const refused = ask(server, { kind: 'sampling', params: SAMPLING });
    await d.request(`troupe.answer.${(await theAsk()).id}`, '{"action":"decline"}');
    const { last, end } = story(await refused);
    expect(last).toMatchObject({ status: 'failed', statusMessage: expect.stringContaining('rejected') });
    expect(end).toMatchObject({ type: 'error', error: { message: expect.stringContaining('failed') } });
    service.unsubscribe();
  }, 60_000);

  it('lists its own tasks, also those of calls that are over', async () => {
    const { made } = story(await ask(server, { cancels: true }));
    const { data } = await d.request(`troupe.call.${server}.look`, { taskId: made.taskId });
    const [{ tasks }, task] = data.structuredContent.value;
    expect(tasks.map(({ taskId }: any) => taskId)).toContain(made.taskId);
    expect(task).toMatchObject({ taskId: made.taskId, status: 'cancelled' });
  }, 60_000);
});

it('a rule answers a question that is a task like any other', async () => {
  const { made, end } = story(await ask('ruled', {}));
  expect([made.status, end.result]).toMatchObject(['working', { action: 'accept', content: { name: 'nobody' } }]);
}, 60_000);
