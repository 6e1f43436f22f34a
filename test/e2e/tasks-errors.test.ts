// Every error that MCP 2025-11-25 has for tasks, on the wire of a real daemon; and that nobody learns from one whether an id
// is another's.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';
import { RELATED } from '../support/task-host.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const METHODS = ['tasks/get', 'tasks/result', 'tasks/cancel'] as const;
const NOBODYS = 'A'.repeat(22);

let d: Daemon;
let url = '';
let host: RawHost;
beforeAll(async () => {
  const servers = {
    everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
    ...{ echo: fixture('echo'), slow: fixture('hangs'), dies: fixture('dies-in-call'), fails: fixture('fails') },
  };
  const http = { tokens: { ann: 'token-of-ann-123456', bob: 'token-of-bob-123456' } };
  d = await daemon({ servers, troupe: { http, tasks: { maxOpen: 3 } } });
  for (const name of Object.keys(servers)) await d.until(name, 'ready', 30_000);
  url = `${await d.http()}/mcp`;
  host = await rawHost(url);
}, 90_000);
afterAll(async () => {
  await host?.close();
  await d?.[Symbol.asyncDispose]();
});

const as = (who: 'ann' | 'bob') => rawHost(url, { headers: { authorization: `Bearer token-of-${who}-123456` } });
const call = (of: RawHost, name: string, args: object = {}, task: unknown = {}) =>
  of.ask('tools/call', { name, arguments: args, task });
const made = async (of: RawHost, name: string, args: object = {}, task: object = {}): Promise<string> =>
  (await call(of, name, args, task)).result.task.taskId;
const codeOf = ({ error }: any): number | undefined => error?.code;

describe('-32602 answers', () => {
  it.each(METHODS)('%s of an id that there is not, of none, and of one that is no text', async (method) => {
    for (const params of [{ taskId: NOBODYS }, { taskId: '' }, {}, { taskId: 7 }, { taskId: null }, { taskId: ['x'] }])
      expect(codeOf(await host.ask(method, params)), JSON.stringify(params)).toBe(-32602);
  });

  it('a cursor that is none', async () => {
    for (const cursor of ['x', '', 7, null, `${NOBODYS}=`])
      expect(codeOf(await host.ask('tasks/list', { cursor })), JSON.stringify(cursor)).toBe(-32602);
  });

  it('a second cancellation, and one of a task that has ended', async () => {
    const sleeping = await made(host, 'slow__sleep', { ms: 600_000 });
    expect((await host.ask('tasks/cancel', { taskId: sleeping })).result.status).toBe('cancelled');
    const done = await made(host, 'echo__echo', { message: 'x' });
    await host.ask('tasks/result', { taskId: done });
    for (const taskId of [sleeping, done]) {
      const { error } = await host.ask('tasks/cancel', { taskId });
      expect([error.code, error.message]).toEqual([-32602, expect.stringMatching(/has ended.*(cancelled|completed)/)]);
    }
    expect((await host.ask('tasks/get', { taskId: done })).result.status).toBe('completed');
  });

  it('a task that is no task', async () => {
    for (const task of [null, 1, 'x', [], { ttl: -1 }, { ttl: '1' }])
      expect(codeOf(await call(host, 'echo__echo', {}, task)), JSON.stringify(task)).toBe(-32602);
  });

  it('a task that has expired, for which there is no result any more', async () => {
    const taskId = await made(host, 'echo__echo', { message: 'x' }, { ttl: 300 });
    await eventually(async () => expect(codeOf(await host.ask('tasks/get', { taskId }))).toBe(-32602), 30_000);
    expect(codeOf(await host.ask('tasks/result', { taskId }))).toBe(-32602);
    expect((await host.ask('tasks/list')).result.tasks.map((each: any) => each.taskId)).not.toContain(taskId);
  }, 45_000);

  it("another's task, in the very words that it has for none at all", async () => {
    const [ann, bob] = await Promise.all([as('ann'), as('bob')]);
    const taskId = await made(ann, 'slow__sleep', { ms: 600_000 });
    for (const method of METHODS) {
      const [theirs, none] = [await bob.ask(method, { taskId }), await bob.ask(method, { taskId: NOBODYS })];
      expect(codeOf(theirs)).toBe(-32602);
      const words = (answer: any, id: string) => JSON.stringify(answer).replaceAll(id, 'ID');
      expect(words(theirs, taskId)).toBe(words(none, NOBODYS));
    }
    expect((await ann.ask('tasks/get', { taskId })).result.status).toBe('working');
    expect((await ann.ask('tasks/cancel', { taskId })).result.status).toBe('cancelled');
    await Promise.all([ann.close(), bob.close()]);
  });
});

describe('-32601 answers', () => {
  it('a tool that must be a task and is none, one that must not and is one', async () => {
    const research = { name: 'everything__simulate-research-query', arguments: { topic: 'x' } };
    expect(codeOf(await host.ask('tools/call', research))).toBe(-32601);
    expect(codeOf(await call(host, 'everything__echo', { message: 'x' }))).toBe(-32601);
    expect(codeOf(await host.ask('tasks/none'))).toBe(-32601);
  });

  it('nothing of the kind to a host of an older version, which waits for the very result', async () => {
    const old = await rawHost(url, { version: '2025-06-18' });
    const { result } = await old.ask('tools/call', {
      ...{ name: 'everything__simulate-research-query', arguments: { topic: 'newts' } },
    });
    expect(result.content[0].text).toContain('# Research Report: newts');
    await old.close();
  }, 30_000);
});

describe('a call that fails', () => {
  /** What the same call comes to as a call, as a task, and what is said of that task. */
  async function both(name: string, args: object = {}) {
    const { id: _, status: __, ...direct } = await host.ask('tools/call', { name, arguments: args });
    const taskId = await made(host, name, args);
    const { id: ___, status: ____, ...kept } = await host.ask('tasks/result', { taskId });
    return { direct, kept, task: (await host.ask('tasks/get', { taskId })).result, taskId };
  }

  it('with an error fails its task, and the result is that very error', async () => {
    const { direct, kept, task } = await both('fails__refuse', { code: -32077, words: 'never' });
    expect(kept).toEqual(direct);
    expect(kept.error).toEqual({ code: -32077, message: 'never' });
    expect([task.status, task.statusMessage]).toEqual(['failed', expect.stringContaining('never')]);
  });

  it('with a result that says so fails its task, and the result is that very result', async () => {
    const { direct, kept, task, taskId } = await both('fails__fail', { words: 'out of luck' });
    const { _meta, ...rest } = kept.result;
    expect({ ...kept, result: rest }).toEqual(direct);
    expect(_meta).toEqual({ [RELATED]: { taskId } });
    expect([task.status, task.statusMessage]).toEqual(['failed', expect.stringContaining('out of luck')]);
  });

  it('because its server died has an outcome that nobody knows, and its task says so', async () => {
    const taskId = await made(host, 'dies__die');
    const { error } = await host.ask('tasks/result', { taskId });
    expect([error.code, error.data.troupe.delivery]).toEqual([-32011, 'outcome unknown']);
    const { status, statusMessage } = (await host.ask('tasks/get', { taskId })).result;
    expect([status, statusMessage]).toEqual(['failed', expect.stringContaining(error.message)]);
  });
});

it('more unfinished tasks than are allowed are refused, and taken again when one has ended', async () => {
  const ann = await as('ann');
  const open = await Promise.all([1, 2, 3].map(() => made(ann, 'slow__sleep', { ms: 600_000 })));
  const { error } = await call(ann, 'slow__sleep', { ms: 1 });
  expect([error.code, error.message]).toEqual([-32012, expect.stringContaining('x-troupe.tasks.maxOpen')]);
  for (const taskId of open) await ann.ask('tasks/cancel', { taskId });
  expect((await call(ann, 'echo__echo', { message: 'x' })).result.task.status).toBe('working');
  await ann.close();
});
