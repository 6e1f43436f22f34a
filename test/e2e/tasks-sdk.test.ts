// The official SDK's experimental tasks, over Streamable HTTP and over `troupe connect`: the reference server's own task
// tool, and plain tools of servers that know nothing of tasks.

import { join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { RELATED, taskHost } from '../support/task-host.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const RESEARCH = 'everything__simulate-research-query';
/** What the reference server asks of a person. */
const choose = () => ({ interpretation: 'snake' });

let d: Daemon;
let url = '';
beforeAll(async () => {
  const servers = {
    everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
    ...{ echo: fixture('echo'), slow: fixture('hangs'), steps: fixture('progress'), curious: fixture('inquires') },
  };
  d = await daemon({ servers, troupe: { tasks: { pollMs: '50ms' } } });
  for (const name of Object.keys(servers)) await d.until(name, 'ready', 30_000);
  url = await d.http();
}, 90_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const TRANSPORTS = {
  http: () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`)),
  stdio: () =>
    new StdioClientTransport({ command: process.execPath, args: [MAIN, 'connect'], env: d.env, stderr: 'ignore' }),
};
const pythons = (id: string) => ({ topic: id, ambiguous: true });
const last = (messages: any[]) => messages.at(-1);

describe.each(['http', 'stdio'] as const)('over %s', (door) => {
  const host = (fill?: (params: any) => object) => taskHost(TRANSPORTS[door](), fill);

  it('a plain tool runs as a task, and its result is what the call would have returned', async () => {
    await using it = await host();
    expect(it.client.getServerCapabilities()?.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const plain: any = await it.client.callTool({ name: 'echo__echo', arguments: { message: 'hé' } });
    const messages = await it.stream('echo__echo', { message: 'hé' });
    const [created] = messages;
    expect(created).toMatchObject({ type: 'taskCreated', task: { status: 'working', pollInterval: 50 } });
    expect(last(messages)).toEqual({
      ...{ type: 'result' },
      result: { ...plain, _meta: { [RELATED]: { taskId: created.task.taskId } } },
    });
  });

  it('progress comes under the token of the request for as long as the task runs', async () => {
    await using it = await host();
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
    const messages = await it.stream('steps__steps', { count: 10, ms: 200 }, { onprogress });
    expect(last(messages).type).toBe('result');
    // The SDK opens the stream of notifications when it likes, so of the first ones nothing is known.
    expect(steps.length).toBeGreaterThan(0);
    expect(steps).toEqual(Array.from(steps, (_, index) => index + (steps[0] ?? 0)));
  });

  it('a tool that is a task at its server is one here, and says how far it is', async () => {
    await using it = await host();
    const messages = await it.stream(RESEARCH, { topic: 'owls' });
    const [created] = messages;
    const said = messages.flatMap(({ task }) => task?.statusMessage ?? []);
    expect(said).toContainEqual(expect.stringMatching(/^(Gathering|Analyzing|Synthesizing|Generating) /));
    expect(last(messages).result.content[0].text).toContain('# Research Report: owls');
    expect(last(messages).result._meta[RELATED]).toEqual({ taskId: created.task.taskId });
  });

  it('what it asks meanwhile is asked of who fetches the result', async () => {
    await using it = await host(choose);
    const messages = await it.stream(RESEARCH, pythons('python'));
    const [{ task }] = messages;
    expect(messages.map((each) => each.task?.status)).toContain('input_required');
    expect(it.asked).toMatchObject([
      {
        message: expect.stringMatching(/^everything asks: The research query "python"/),
        _meta: { [RELATED]: { taskId: task.taskId } },
      },
    ]);
    expect(last(messages).result.content[0].text).toContain('python (snake)');
  });

  it('a plain tool that asks makes its task wait for input, too', async () => {
    await using it = await host(() => ({ name: 'Ada' }));
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const messages = await it.stream('curious__inquire', {
      ...{ method: 'elicitation/create', params: { message: 'Who?', requestedSchema } },
    });
    const [{ task }] = messages;
    expect(it.asked).toMatchObject([{ message: 'curious asks: Who?', _meta: { [RELATED]: { taskId: task.taskId } } }]);
    expect(JSON.parse(last(messages).result.content[0].text)).toMatchObject({
      result: { action: 'accept', content: { name: 'Ada' } },
    });
    expect((await it.tasks.getTask(task.taskId)).status).toBe('completed');
  });

  it('a tool that must be a task is not called without, and one that must not is not called with', async () => {
    await using it = await host();
    const { tools } = await it.client.listTools();
    const support = Object.fromEntries(tools.map(({ name, execution }) => [name, execution?.taskSupport]));
    expect(support).toMatchObject({ [RESEARCH]: 'required', everything__echo: 'forbidden', echo__echo: 'optional' });
    const params = { name: RESEARCH, arguments: { topic: 'x' } };
    await expect(it.client.request({ method: 'tools/call', params }, CallToolResultSchema)).rejects.toMatchObject({
      code: -32601,
    });
    await expect(it.create('everything__echo', { message: 'x' })).rejects.toMatchObject({ code: -32601 });
  });

  it('a cancelled task stays so, is stopped at its server, and is cancelled once', async () => {
    await using it = await host();
    const cancelled = async (): Promise<number> => {
      const seen: any = await it.client.callTool({ name: 'slow__cancelled', arguments: {} });
      return seen.structuredContent.value.length;
    };
    const before = await cancelled();
    const { taskId } = await it.create('slow__sleep', { ms: 600_000 });
    const waiting = expect(it.result(taskId)).rejects.toMatchObject({ code: -32014 });
    expect(await it.tasks.cancelTask(taskId)).toMatchObject({ taskId, status: 'cancelled' });
    await waiting;
    await expect(it.tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 });
    await eventually(async () => expect(await cancelled()).toBe(before + 1), 15_000);
    expect((await it.tasks.getTask(taskId)).status).toBe('cancelled');
  });

  it('a host that is gone finds its task again in another session, also by looking through all of them', async () => {
    let taskId = '';
    {
      await using it = await host();
      ({ taskId } = await it.create('slow__sleep', { ms: 1_000 }));
    }
    await using other = await host();
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const { tasks, nextCursor } = await other.tasks.listTasks(cursor);
      found.push(...tasks.map((each) => each.taskId));
      cursor = nextCursor;
    } while (cursor);
    expect(found).toContain(taskId);
    expect((await other.result(taskId)).content[0].text).toBe('slept 1000 ms');
    expect((await other.tasks.getTask(taskId)).status).toBe('completed');
  });
});
