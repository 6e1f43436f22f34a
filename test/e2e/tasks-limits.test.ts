// What tasks may cost, and what becomes of those that cost more: numbers, times and sizes of the configuration, each with the
// sentence that its principal is told; and what an id of somebody else's is worth.

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type TaskLine, taskLine } from '../support/task-line.ts';

const TASKS = { maxOpen: 3, ttlMs: '1h', maxTtlMs: '30d', maxResultBytes: '64KB', pollMs: 250 };
const AS_ANNA = 'troupe.as.anna';

let d: Daemon;
let line: TaskLine;
beforeAll(async () => {
  d = await daemon({
    servers: { slow: fixture('hangs'), big: fixture('big'), echo: fixture('echo') },
    troupe: { tasks: TASKS },
  });
  line = await taskLine(join(d.state, 'control.sock'));
}, 60_000);
afterAll(async () => {
  await line[Symbol.asyncDispose]();
  await d[Symbol.asyncDispose]();
});

const create = async (tree: string, tool: string, args: object, headers: Record<string, string> = {}) =>
  d.request(`${tree}.call.${tool}`, args, { headers: { 'Troupe-Task': '1', ...headers } });
const echo = (tree = 'troupe', headers = {}) => create(tree, 'echo.echo', { message: 'hi' }, headers);
const idOf = async (reply: Promise<any>): Promise<string> => (await reply).data.taskId;
const ended = (id: string, tree = 'troupe') => d.request(`${tree}.task.result.${id}`);

it('a principal has so many unfinished ones, and others do not feel it', async () => {
  const open = await Promise.all([1, 2, 3].map(() => idOf(create(AS_ANNA, 'slow.sleep', { ms: 600_000 }))));
  const refused = await create(AS_ANNA, 'slow.sleep', { ms: 1 });
  expect(refused.code).toBe(429);
  expect(refused.error).toBe('3 tasks are unfinished; wait, cancel some, or raise x-troupe.tasks.maxOpen');
  const other = (await echo()).data;
  expect(other.status).toBe('working');
  await d.request(`${AS_ANNA}.task.cancel.${open[0]}`);
  expect((await echo(AS_ANNA)).data.status).toBe('working');
  await ended(other.taskId);
  for (const id of open.slice(1)) await d.request(`${AS_ANNA}.task.cancel.${id}`);
});

it('the ttl is what was asked for, the default, or the most there is', async () => {
  /** Each is awaited: a fourth one that is made before the first has ended is refused. */
  const made = async (headers = {}) => {
    const { data } = await echo('troupe', headers);
    await ended(data.taskId);
    return data;
  };
  expect((await made()).ttl).toBe(3_600_000);
  expect((await made({ 'Troupe-Ttl': '30d' })).ttl).toBe(30 * 86_400_000);
  expect((await made({ 'Troupe-Ttl': '90d' })).ttl).toBe(30 * 86_400_000);
  expect((await made()).pollInterval).toBe(250);
});

it('one whose time is over is gone, with its result, also while it runs', async () => {
  const done = await idOf(echo('troupe', { 'Troupe-Ttl': '200ms' }));
  const running = await idOf(create('troupe', 'slow.sleep', { ms: 600_000 }, { 'Troupe-Ttl': '200ms' }));
  await eventually(() => rowsOf(done, running).length === 0, 30_000);
  expect((await d.request(`troupe.task.get.${done}`)).code).toBe(404);
  await eventually(async () => (await d.server('slow')).inFlight === 0);
});

it('a result that is too large is not kept, and the task says so', async () => {
  const id = await idOf(create('troupe', 'big.big', { bytes: 200_000 }));
  const reply = await ended(id);
  expect(reply.code).toBe(413);
  expect(reply.error).toMatch(
    /^the result has \d+ bytes and was not kept; x-troupe.tasks.maxResultBytes allows 65536$/,
  );
  expect((await line.get(id)).status).toBe('failed');
});

it('a server or tool that there is not, or that may not be called, makes no task', async () => {
  expect(await create('troupe', 'echo.nothing', {})).toMatchObject({ code: 404 });
  await expect(line.create('nobody', 'x', {})).rejects.toThrow('there is no server nobody; troupe ps lists them');
  await d.cli('stop', 'big');
  expect(await create('troupe', 'big.big', {})).toMatchObject({ code: 503, error: /^server big is stopped/ });
  await d.cli('start', 'big');
});

it("another's id is answered as one that there is not, and whoever guesses is slowed down and noted", async () => {
  const id = await idOf(echo(AS_ANNA));
  await ended(id, AS_ANNA);
  const [strange, unknown] = [
    await d.request(`troupe.as.bert.task.get.${id}`),
    await d.request(`troupe.as.bert.task.get.${'0'.repeat(32)}`),
  ];
  expect([strange.code, unknown.code]).toEqual([404, 404]);
  expect(strange.error?.replace(id, '…')).toBe(unknown.error?.replace('0'.repeat(32), '…'));
  const codes = await Promise.all(
    Array.from({ length: 100 }, (_, nth) => d.request(`troupe.as.bert.task.get.${nth.toString(16).padStart(32, '0')}`)),
  );
  expect(codes.filter(({ code }) => code === 429).length).toBeGreaterThan(50);
  expect((await d.request(`${AS_ANNA}.task.get.${id}`)).data.status).toBe('completed');
  await eventually(() => noted('bert') > 100);
});

it('what ended can be removed, and what runs stays', async () => {
  const id = await idOf(create('troupe', 'slow.sleep', { ms: 600_000 }));
  await ended(await idOf(echo()));
  expect((await d.cli('tasks', 'prune')).stdout).toMatch(/^\d+ tasks? removed$/);
  expect((await line.all()).map(({ taskId }) => taskId)).toEqual([id]);
  await line.cancel(id);
});

it('neither what was called with nor what came of it lies in the clear', async () => {
  const secret = 'a-word-that-nobody-else-says';
  const id = await idOf(create('troupe', 'echo.echo', { message: secret }));
  expect((await ended(id)).text).toContain(secret);
  expect(await d.filesWith(secret)).toEqual([]);
});

const database = () => new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
function rowsOf(...ids: string[]): unknown[] {
  const db = database();
  try {
    return db.prepare(`SELECT id FROM tasks WHERE id IN (${ids.map(() => '?')})`).all(ids);
  } finally {
    db.close();
  }
}
function noted(principal: string): number {
  const db = database();
  try {
    return (
      db.prepare("SELECT count(*) AS n FROM audit WHERE principal = ? AND method = 'tasks/get'").get(principal) as any
    ).n;
  } finally {
    db.close();
  }
}
