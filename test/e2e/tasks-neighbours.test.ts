// Two daemons on one state directory, and tasks that either of them runs: what one of them makes, the other shows, waits for,
// asks about, tells of and ends.

import { join } from 'node:path';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Beside, beside } from '../support/beside.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { RELATED, type TaskHost, taskHost } from '../support/task-host.ts';
import { type TaskLine, taskLine } from '../support/task-line.ts';

const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };
const SERVERS = {
  ...{ echo: fixture('echo'), slow: fixture('hangs'), steps: fixture('progress') },
  ...{ curious: fixture('inquires'), wipes: fixture('destructive', { approve: 'destructive' }) },
};

let d: Daemon;
let b: Beside;
let here: TaskLine;
let there: TaskLine;
let host: TaskHost;
beforeAll(async () => {
  d = await daemon({ servers: SERVERS });
  b = await beside(d, 'b');
  here = await taskLine(join(d.state, 'control.sock'));
  there = await taskLine(b.socket);
  const { url } = (await b.status()).http;
  host = await taskHost(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)), () => ({ name: 'Ann' }));
}, 90_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await here[Symbol.asyncDispose]();
  await there[Symbol.asyncDispose]();
  await b[Symbol.asyncDispose]();
  await d[Symbol.asyncDispose]();
});

const inquire = { method: 'elicitation/create', params: FORM };

it('shows it, lists it and waits for it through the other', async () => {
  const { taskId } = await here.create('slow', 'sleep', { ms: 1_500 });
  expect((await there.get(taskId)).status).toBe('working');
  expect((await there.all()).map((task) => task.taskId)).toContain(taskId);
  const waited = there.end(taskId);
  expect(await waited).toEqual(await here.end(taskId));
  expect((await there.get(taskId)).status).toBe('completed');
});

it('asks the host that waits at the other, in the words of the server, and takes its answer', async () => {
  const { taskId } = await here.create('curious', 'inquire', inquire);
  await eventually(async () => (await there.get(taskId)).status === 'input_required', 15_000);
  const { content } = await host.result(taskId);
  const { result } = JSON.parse(content[0].text);
  expect(result).toEqual({ action: 'accept', content: { name: 'Ann' } });
  expect(host.asked.at(-1)).toMatchObject({ ...FORM, message: 'curious asks: Who?', _meta: { [RELATED]: { taskId } } });
  expect((await here.get(taskId)).status).toBe('completed');
});

it('asks it for an approval, and nothing is sent before it was given', async () => {
  const { taskId } = await here.create('wipes', 'wipe', { path: 'all' });
  await eventually(async () => (await there.get(taskId)).status === 'input_required', 15_000);
  expect(await here.get(taskId)).toMatchObject({ phase: 'queued', attempt: 0 });
  const { content } = await host.result(taskId);
  expect(content[0].text).toBe('wiped all, call 1');
  expect(host.asked.at(-1).message).toMatch(/^Approve this call\? The tool wipe of the server wipes/);
});

it('is answered at the inbox of the other, too', async () => {
  const { taskId } = await here.create('curious', 'inquire', inquire);
  const asks = () => there.ask<{ asks: { id: string; task?: string }[] }>('inbox', {});
  const ask = await eventually(async () => {
    const found = (await asks()).asks.find((each) => each.task === taskId);
    if (!found) throw new Error('nothing is asked');
    return found;
  }, 15_000);
  await there.ask('answer', { id: ask.id, action: 'decline' });
  expect((await here.end(taskId)).text).toContain('"action":"decline"');
});

it('is cancelled through the other, and stopped where it runs', async () => {
  const { taskId } = await here.create('slow', 'sleep', { ms: 600_000 });
  await eventually(async () => (await d.server('slow')).inFlight === 1, 15_000);
  expect((await there.cancel(taskId)).status).toBe('cancelled');
  await eventually(async () => (await d.server('slow')).inFlight === 0, 15_000);
  expect(await here.end(taskId)).toEqual({ code: 'cancelled', delivery: 'outcome unknown' });
  await expect(here.cancel(taskId)).rejects.toThrow('the task has ended: it is cancelled, and stays so');
});

it('tells the session of the other what happens to its task after the one that ran it is gone', async () => {
  const { taskId } = await host.create('slow__sleep', { ms: 600_000 });
  await eventually(async () => (await here.get(taskId)).phase === 'dispatching', 15_000);
  expect((await here.cancel(taskId)).status).toBe('cancelled');
  await eventually(
    () => host.heard.some(({ method, params }) => method === 'notifications/tasks/status' && params.taskId === taskId),
    15_000,
  );
});
