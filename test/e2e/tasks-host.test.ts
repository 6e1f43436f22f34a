// Tasks on the wire: every message that a host gets of them, checked whole against the schemas of 2025-11-25, and what
// becomes of them when it leaves, asks again, or speaks an older version.

import * as mcp from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Event, type RawHost, rawHost } from '../support/host.ts';
import { RELATED } from '../support/task-host.ts';

let d: Daemon;
let url = '';
beforeAll(async () => {
  const servers = {
    ...{ echo: fixture('echo'), slow: fixture('hangs'), steps: fixture('progress'), tags: fixture('tags') },
    ...{ keeps: fixture('records'), curious: fixture('inquires'), alone: fixture('hangs', { share: 'session' }) },
    careful: fixture('hangs', { share: 'session', approve: 'always' }),
  };
  d = await daemon({
    servers,
    troupe: { http: { tokens: { ann: 'token-of-ann-123456', bob: 'token-of-bob-123456' } } },
  });
  for (const name of Object.keys(servers)) await d.until(name, 'ready', 30_000);
  url = `${await d.http()}/mcp`;
}, 90_000);
afterAll(() => d?.[Symbol.asyncDispose]());

/** A message is what the schema knows of it, and nothing besides. */
function checked<Value>(schema: { parse(value: unknown): Value }, value: unknown): Value {
  const parsed = schema.parse(value);
  expect(value).toEqual(parsed);
  return parsed;
}

async function create(host: RawHost, name: string, args: object = {}, more: object = {}): Promise<mcp.Task> {
  const { result, error } = await host.ask('tools/call', { name, arguments: args, task: {}, ...more });
  expect(error).toBeUndefined();
  return checked(mcp.CreateTaskResultSchema, result).task;
}

/** What comes on the standing stream, gathered until the host leaves. */
async function listening(host: RawHost) {
  const stream = await host.get();
  const heard: any[] = [];
  const gather = async (): Promise<void> => {
    for await (const { message } of stream.events) heard.push(message);
  };
  void gather().catch(() => {}); // it was left
  return {
    heard,
    of: (method: string) => heard.filter((each) => each.method === `notifications/${method}`),
    leave: stream.leave,
  };
}

const until = async (stream: { events: AsyncGenerator<Event> }, isIt: (message: any) => boolean): Promise<any> => {
  for (;;) {
    const { value, done } = await stream.events.next();
    if (done) throw new Error('the stream ended before that');
    if (isIt(value.message)) return value.message;
  }
};

describe('the session that made a task', () => {
  it('is told of its status, its progress under the old token, and its log lines, each as MCP writes it', async () => {
    const host = await rawHost(url);
    const news = await listening(host);
    await host.ask('logging/setLevel', { level: 'debug' });
    const [steps, tagged] = await Promise.all([
      create(host, 'steps__steps', { count: 3, ms: 50 }, { _meta: { progressToken: 'tok' } }),
      create(host, 'tags__tag', { tag: 'mine', ms: 500 }),
    ]);
    await eventually(() => expect(news.of('tasks/status')).toHaveLength(2), 15_000);
    await eventually(() => expect(news.of('progress')).toHaveLength(3), 15_000);
    await eventually(() => expect(news.of('message')).toHaveLength(1), 15_000);
    for (const message of news.of('tasks/status')) {
      const { jsonrpc, ...notification } = message;
      const { params } = checked(mcp.TaskStatusNotificationSchema, notification);
      expect([params.status, params._meta]).toEqual(['completed', undefined]);
    }
    expect(new Set(news.of('tasks/status').map(({ params }) => params.taskId))).toEqual(
      new Set([steps.taskId, tagged.taskId]),
    );
    expect(news.of('progress').map(({ params }) => params)).toEqual(
      [1, 2, 3].map((progress) => ({
        ...{ progressToken: 'tok', progress, total: 3, message: `step ${progress}` },
        _meta: { [RELATED]: { taskId: steps.taskId } },
      })),
    );
    expect(news.of('message')[0].params).toEqual({
      ...{ level: 'info', data: 'mine', _meta: { [RELATED]: { taskId: tagged.taskId } } },
    });
    news.leave();
    await host.close();
  });

  it('hears on the line of the result what happens while it waits there, and the question with the id', async () => {
    const host = await rawHost(url, { capabilities: { elicitation: {} } });
    const requestedSchema = { type: 'object', properties: {} };
    const { taskId } = await create(host, 'curious__inquire', {
      ...{ method: 'elicitation/create', params: { message: 'Who?', requestedSchema } },
    });
    const stream = await host.begin('r', 'tasks/result', { taskId });
    const asked = await until(stream, ({ method }) => method === 'elicitation/create');
    checked(mcp.ElicitRequestSchema, { method: asked.method, params: asked.params });
    expect(asked.params).toEqual({
      ...{ message: 'curious asks: Who?', requestedSchema, _meta: { [RELATED]: { taskId } } },
    });
    await eventually(async () => {
      const { result } = await host.ask('tasks/get', { taskId });
      expect(checked(mcp.GetTaskResultSchema, result).status).toBe('input_required');
    }, 15_000);
    const _meta = { [RELATED]: { taskId } };
    await host.send('POST', { id: asked.id, result: { action: 'accept', content: {}, _meta } });
    const { result } = await until(stream, ({ id }) => id === 'r');
    expect(result._meta).toEqual({ [RELATED]: { taskId } });
    expect(JSON.parse(result.content[0].text).result).toEqual({ action: 'accept', content: {} });
    await host.close();
  });
});

describe('who leaves', () => {
  it('by cancelling the request for the result ends the waiting, not the task', async () => {
    const host = await rawHost(url);
    const { taskId } = await create(host, 'slow__sleep', { ms: 3_000 });
    let answer: any;
    const waiting = host.ask('tasks/result', { taskId }, 'w').then((given) => {
      answer = given;
    });
    await eventually(async () => {
      await host.notify('notifications/cancelled', { requestId: 'w' });
      return answer !== undefined;
    }, 15_000);
    await waiting;
    expect(answer.error.message).toMatch(/the task goes on/);
    const { result } = await host.ask('tasks/result', { taskId });
    expect(result.content[0].text).toBe('slept 3000 ms');
    await host.close();
  });

  it('by ending its session, finds the task in another one', async () => {
    const host = await rawHost(url);
    const { taskId } = await create(host, 'slow__sleep', { ms: 1_000 });
    const waiting = host.ask('tasks/result', { taskId }, 'w').catch(() => ({}));
    await host.send('DELETE');
    await waiting;
    const other = await rawHost(url);
    expect((await other.ask('tasks/result', { taskId })).result.content[0].text).toBe('slept 1000 ms');
    await Promise.all([host.close(), other.close()]);
  });

  it('and had a process of its own, finds the task too, and the process is gone when the task is', async () => {
    const host = await rawHost(`${url}/alone`);
    const { taskId } = await create(host, 'sleep', { ms: 2_000 });
    const own = async () => (await d.status()).servers.filter(({ name }) => name.startsWith('alone@session-'));
    await eventually(async () => expect(await own()).toHaveLength(1), 15_000);
    await host.send('DELETE');
    await eventually(async () => expect((await host.ask('ping')).status).toBe(404), 15_000);
    const other = await rawHost(url);
    expect((await other.ask('tasks/result', { taskId })).result.content[0].text).toBe('slept 2000 ms');
    await eventually(async () => expect(await own()).toHaveLength(0), 15_000);
    await Promise.all([host.close(), other.close()]);
  });

  it('while its task waits for somebody’s word, leaves no process behind when that has been given', async () => {
    const host = await rawHost(`${url}/careful`);
    const { taskId } = await create(host, 'sleep', { ms: 1 });
    const asks = async (): Promise<AskView[]> => (await d.request('troupe.inbox')).data;
    const [ask] = await eventually(async () => {
      const all = (await asks()).filter(({ server }) => server === 'careful');
      expect(all).toHaveLength(1);
      return all;
    }, 15_000);
    await host.send('DELETE');
    await eventually(async () => expect((await host.ask('ping')).status).toBe(404), 15_000);
    expect((await d.cli('answer', ask?.id as string, '--accept')).exitCode).toBe(0);
    const other = await rawHost(url);
    expect((await other.ask('tasks/result', { taskId })).result.content[0].text).toBe('slept 1 ms');
    const names = async () => (await d.status()).servers.map(({ name }) => name);
    await eventually(
      async () => expect((await names()).filter((name) => name.includes('@session-'))).toEqual([]),
      15_000,
    );
    await Promise.all([host.close(), other.close()]);
  });
});

it('a task that goes on after a restart leaves no process of its session behind', async () => {
  const alone = fixture('hangs', { share: 'session', maxInFlight: 1 });
  await using own = await daemon({ servers: { alone } });
  await own.until('alone', 'ready');
  const host = await rawHost(`${await own.http()}/mcp/alone`);
  await create(host, 'sleep', { ms: 59_000 });
  const { taskId } = await create(host, 'sleep', { ms: 2 });
  const processes = async () => (await own.status()).servers.filter(({ name }) => name.includes('@session-'));
  await eventually(async () => expect(await processes()).toMatchObject([{ inFlight: 1 }]), 15_000);
  await own.kill();
  await own.start();
  const { data } = await own.request(`troupe.task.result.${taskId}`);
  expect(data.content[0].text).toBe('slept 2 ms');
  await eventually(async () => expect(await processes()).toEqual([]), 15_000);
  await host.close();
}, 60_000);

describe('one of many', () => {
  const as = (who: 'ann' | 'bob') => rawHost(url, { headers: { authorization: `Bearer token-of-${who}-123456` } });

  it('is listed, page by page, each task once, to its principal alone', async () => {
    const [ann, bob] = await Promise.all([as('ann'), as('bob')]);
    const made: string[] = [];
    for (let batch = 0; batch < 11; batch++)
      made.push(
        ...(await Promise.all(
          Array.from({ length: 20 }, () => create(ann, 'echo__echo', { message: 'x' }).then(({ taskId }) => taskId)),
        )),
      );
    const listed: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const { result } = await ann.ask('tasks/list', cursor === undefined ? {} : { cursor });
      const page = checked(mcp.ListTasksResultSchema, result);
      listed.push(...page.tasks.map(({ taskId }) => taskId));
      ({ nextCursor: cursor } = page);
      pages++;
    } while (cursor !== undefined);
    expect(pages).toBeGreaterThan(1);
    expect(listed.toSorted()).toEqual(made.toSorted());
    expect((await bob.ask('tasks/list')).result).toEqual({ tasks: [] });
    await Promise.all([ann.close(), bob.close()]);
  }, 60_000);

  it('made twice with one key is one task, and one call', async () => {
    const host = await rawHost(url);
    const key = { _meta: { 'troupe/idempotency-key': 'once' } };
    const args = { message: 'only one of these' };
    const made = await Promise.all(Array.from({ length: 20 }, () => create(host, 'keeps__echo', args, key)));
    expect(new Set(made.map(({ taskId }) => taskId)).size).toBe(1);
    await host.ask('tasks/result', { taskId: made[0]?.taskId });
    const { result } = await host.ask('tools/call', { name: 'keeps__received', arguments: {} });
    const calls = result.structuredContent.value.filter((line: string) => line.includes('only one of these'));
    expect(calls).toHaveLength(1);
    expect(JSON.parse(calls[0]).params).not.toHaveProperty('task');
    await host.close();
  });
});

it.each(['2024-11-05', '2025-03-26', '2025-06-18'])(
  'a host of %s is called back at once, whatever it says of tasks',
  async (version) => {
    const host = await rawHost(url, { version });
    expect(host.opened.capabilities).not.toHaveProperty('tasks');
    const { tools } = (await host.ask('tools/list')).result;
    expect(tools.filter(({ execution }: any) => execution !== undefined)).toEqual([]);
    const message = `from ${version}`;
    const { result } = await host.ask('tools/call', { name: 'keeps__echo', arguments: { message }, task: { ttl: 5 } });
    expect(result).toEqual({ content: [{ type: 'text', text: message }] });
    const received = await host.ask('tools/call', { name: 'keeps__received', arguments: {} });
    const lines: string[] = received.result.structuredContent.value;
    expect(JSON.parse(lines.find((line) => line.includes(message)) ?? '{}').params).not.toHaveProperty('task');
    expect((await host.ask('tasks/list')).error.code).toBe(-32601);
    await host.close();
  },
);
