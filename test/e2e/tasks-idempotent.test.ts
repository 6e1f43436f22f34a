// One key, ten thousand requests at once, four daemons, two doors: one task, one execution, and everybody is told of it.

import { join } from 'node:path';
import { headers } from 'nats';
import { Pool } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Beside, beside } from '../support/beside.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { rawHost } from '../support/host.ts';
import { executions, taskLine } from '../support/task-line.ts';

const EACH = 5_000;
/** Also on a machine that has other things to do. */
const PATIENCE_MS = 240_000;

let d: Daemon;
let others: Beside[];
let tallies: string;

beforeAll(async () => {
  d = await daemon({ troupe: { http: { address: '127.0.0.1:0' } } });
  tallies = join(d.dir, 'tallies');
  const server = fixture('tallies');
  server.args.push(tallies);
  await d.write({ only: server });
  await d.until('only', 'ready');
  others = await Promise.all(['two', 'three', 'four'].map((name) => beside(d, name)));
}, 120_000);
afterAll(async () => {
  for (const each of others) await each[Symbol.asyncDispose]();
  await d[Symbol.asyncDispose]();
});

test(
  'ten thousand creations with one key are one task and one execution',
  async () => {
    const key = 'the one key';
    const urls = [await d.http(), ...(await Promise.all(others.map(async (each) => (await each.status()).http.url)))];
    const hosts = await Promise.all(urls.map((url) => httpHost(String(url))));
    const nc = await d.nats();
    const wish = headers();
    for (const [name, value] of [
      ['Troupe-Task', '1'],
      ['Troupe-Idempotency-Key', key],
    ] as const)
      wish.set(name, value);
    const body = JSON.stringify({ id: 'once', ms: 200 });
    const overNats = Array.from({ length: EACH }, async () => {
      const msg = await nc.request('troupe.call.only.tally', body, { timeout: PATIENCE_MS, headers: wish });
      return msg.json<{ taskId?: string }>().taskId ?? msg.string();
    });
    const overHttp = Array.from({ length: EACH }, (_, index) => hosts[index % hosts.length]?.create(key));
    const ids = new Set(await Promise.all([...overNats, ...overHttp]));
    expect([...ids]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);

    const [id] = [...ids] as [string];
    for (const socket of [join(d.state, 'control.sock'), ...others.map((each) => each.socket)]) {
      await using line = await taskLine(socket);
      expect(await line.end(id)).toEqual({ text: 'once' });
      expect(await line.all()).toHaveLength(1);
    }
    expect(executions(tallies, 'once')).toBe(1);
    for (const host of hosts) await host.close();
  },
  PATIENCE_MS,
);

test('the same key for another call is refused, and is free for another principal', async () => {
  await using line = await taskLine(join(d.state, 'control.sock'));
  const key = 'shared';
  const { taskId } = await line.create('only', 'tally', { id: 'mine' }, { key });
  await expect(line.create('only', 'tally', { id: 'other' }, { key })).rejects.toMatchObject({ code: 'invalid' });
  const wish = { 'Troupe-Task': '1', 'Troupe-Idempotency-Key': key };
  const theirs = await d.request('troupe.as.bob.call.only.tally', { id: 'theirs' }, { headers: wish });
  expect(theirs.data.taskId).toMatch(/^[0-9a-f]{32}$/);
  expect(theirs.data.taskId).not.toBe(taskId);
  expect(await line.end(theirs.data.taskId)).toEqual({ text: 'theirs' });
  expect(executions(tallies, 'other')).toBe(0);
});

test('a key is kept after the task has ended, and after all daemons were killed', async () => {
  const order = { key: 'kept' };
  await using line = await taskLine(join(d.state, 'control.sock'));
  const { taskId } = await line.create('only', 'tally', { id: 'kept' }, order);
  await line.result(taskId);
  await Promise.all([d.kill(), ...others.map((each) => each.kill())]);
  await Promise.all([d.start(), ...others.map((each) => each.start())]);
  for (const socket of [join(d.state, 'control.sock'), ...others.map((each) => each.socket)]) {
    await using after = await taskLine(socket);
    expect((await after.create('only', 'tally', { id: 'kept' }, order)).taskId).toBe(taskId);
  }
  expect(executions(tallies, 'kept')).toBe(1);
});

/** A session whose requests go out as fast as its connections take them. */
async function httpHost(url: string) {
  const { session, close } = await rawHost(`${url}/mcp/only`);
  const pool = new Pool(url, { connections: 64, headersTimeout: PATIENCE_MS });
  let last = 1;
  return {
    async create(key: string): Promise<string> {
      const params = { name: 'tally', arguments: { id: 'once', ms: 200 }, task: {} };
      const _meta = { 'troupe/idempotency-key': key };
      const { body } = await pool.request({
        ...{ method: 'POST', path: '/mcp/only' },
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...{ 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: ++last, method: 'tools/call', params: { ...params, _meta } }),
      });
      const text = await body.text();
      // Behind a slow disk an answer comes as the only event of a stream.
      const { result } = JSON.parse(/^data: ?(\{.*)$/m.exec(text)?.[1] ?? text);
      return result?.task.taskId ?? text;
    },
    close: async () => {
      await pool.destroy();
      await close();
    },
  };
}
