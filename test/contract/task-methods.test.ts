// The control methods of tasks, from the socket of the daemon to the client of the command line: what is let through, that
// results and failures arrive whole, and that nobody waits for who has gone.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Outcome } from '../../src/calls/call.ts';
import { connectControl } from '../../src/cli/control.ts';
import { openControl } from '../../src/doors/control.ts';
import type { OperationName, Ports } from '../../src/operations/operations.ts';
import { type Failure, TroupeError } from '../../src/protocol/failures.ts';
import type { Order, Tasks } from '../../src/tasks/task.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';
import { idOf, taskOf } from '../support/task-daemon.ts';

const ID = idOf('ab12cd34');
const TASK = taskOf('ab12cd34');

/** The door and its client, before tasks that note what is wanted of them. */
async function stage(come: (signal?: AbortSignal) => Promise<Outcome> = () => new Promise(() => {})) {
  const dir = await scratch();
  const path = join(dir.path, 'run', 'control.sock');
  const wanted: unknown[] = [];
  const orders: Order[] = [];
  const note = <Value>(what: unknown[], value: Value): Value => {
    wanted.push(what);
    return value;
  };
  const tasks: Tasks = {
    create: async (order) => {
      orders.push(order);
      return TASK;
    },
    get: (...what) => note(['get', ...what], TASK),
    list: (...what) => note(['list', ...what], { tasks: [TASK], next: 'n' }),
    outcome: (id, principal, signal) => note(['outcome', id, principal], come(signal)),
    cancel: async () => {
      throw new TroupeError('ended', 'it has ended');
    },
    prune: async (...what) => note(['prune', ...what], 3),
    isRunningFor: () => false,
    version: 7,
    changed: async (...what) => note(['changed', ...what], undefined),
  };
  const door = await openControl({ path, ports: { tasks } as Ports });
  const control = await connectControl(path);
  return {
    ...{ control, path, wanted, orders },
    ask: (name: OperationName, params: object | Buffer) =>
      control.request(name, Buffer.isBuffer(params) ? params : Buffer.from(JSON.stringify(params))).result.then(String),
    async [Symbol.asyncDispose]() {
      control.close();
      await door.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

test("an order is the owner's, with the params of the tool byte for byte", async () => {
  await using all = await stage();
  const params = '{"name":"add","arguments":{"a":9007199254740993,  "b":1.0},"_meta":{"x":1}}';
  const head = '{"server":"demo","tool":"add","ttlMs":60000,"key":"once"';
  expect(JSON.parse(await all.ask('taskCreate', Buffer.from(`${head},"params":${params}}`)))).toEqual(TASK);
  const [{ params: sent, ...order } = {} as Order] = all.orders;
  expect(order).toEqual({ principal: '_', door: 'control', server: 'demo', tool: 'add', ttlMs: 60_000, key: 'once' });
  expect(String(sent)).toBe(params);
});

const order = { server: 'demo', tool: 'add', params: { name: 'add' } };

test.each<[OperationName, object | Buffer, RegExp]>([
  ['taskCreate', {}, /^tool must be a string/],
  ['taskCreate', { ...order, server: '' }, /^server must be a string that is not empty$/],
  ['taskCreate', { ...order, params: undefined }, /^params must be the params of tools\/call/],
  ['taskCreate', { ...order, params: [] }, /^params must be the params of tools\/call/],
  ['taskCreate', { ...order, params: { name: 'rm' } }, /^params.name must be the tool$/],
  [
    'taskCreate',
    Buffer.from('{"server":"s","tool":"add","params":{"name":"rm","name":"add"}}'),
    /^params.name must be/,
  ],
  ['taskCreate', { ...order, params: { name: 'add', task: {} } }, /^params must not have a task/],
  ['taskCreate', { ...order, ttlMs: 1.5 }, /^ttlMs must be a whole number of milliseconds, at least 1$/],
  ['taskCreate', { ...order, ttlMs: '1h' }, /^ttlMs must be a whole number/],
  ['taskCreate', { ...order, key: '' }, /^key must be a string that is not empty$/],
  ['taskCreate', { ...order, key: 'k'.repeat(257) }, /^key must have at most 256 characters$/],
  ['tasks', { cursor: 7 }, /^cursor must be a string/],
  ['tasks', { since: 'now' }, /^since must be a number, at least 0$/],
  ['taskGet', {}, /^id must be a string/],
  ['taskResult', { id: 7 }, /^id must be a string/],
  ['taskCancel', { id: '' }, /^id must be a string/],
  ['tasksPrune', { olderMs: -1 }, /^olderMs must be a number, at least 0$/],
])('%s refuses %j in one sentence', async (method, params, sentence) => {
  await using all = await stage();
  await expect(all.ask(method, params)).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringMatching(sentence) },
  });
  expect([all.orders, all.wanted]).toEqual([[], []]);
});

test("the owner sees everybody's, page by page, and may wait for a change", async () => {
  await using all = await stage();
  const listed = { version: 7, tasks: [TASK], next: 'n' };
  expect(JSON.parse(await all.ask('tasks', {}))).toEqual(listed);
  expect(JSON.parse(await all.ask('tasks', { since: 7, cursor: 'n' }))).toEqual(listed);
  expect(JSON.parse(await all.ask('taskGet', { id: ID }))).toEqual(TASK);
  expect(JSON.parse(await all.ask('tasksPrune', {}))).toEqual({ removed: 3 });
  const waited = [
    ['changed', 7],
    ['list', undefined, 'n'],
  ];
  expect(all.wanted).toEqual([['list', undefined, undefined], ...waited, ['get', ID, undefined], ['prune', 0]]);
  await expect(all.ask('taskCancel', { id: ID })).rejects.toMatchObject({ code: 'ended', message: 'it has ended' });
});

test('a result arrives as the bytes that were kept', async () => {
  const result = '{"z":9007199254740993, "content":[ ]}';
  await using all = await stage(async () => ({ ok: true, result: Buffer.from(result), isError: false }));
  expect(await all.ask('taskResult', { id: ID })).toBe(result);
  expect(all.wanted).toEqual([['outcome', ID, undefined]]);
});

test("a failure arrives whole: what is known of the request, and a server's own error", async () => {
  const own = {
    code: 'lost',
    delivery: 'outcome unknown',
    message: 'interrupted',
    server: 'demo',
    state: 'waiting',
  } as const;
  const error = Buffer.from('{"code":-32099,"message":"full","data":{"at":9007199254740993}}');
  const failures: Failure[] = [own, { code: 'rejected', delivery: 'failed', message: 'full', error }];
  await using all = await stage(async () => ({ ok: false, failure: failures.shift() ?? own }));
  await expect(all.ask('taskResult', { id: ID })).rejects.toMatchObject({
    ...{ code: 'lost', message: 'interrupted' },
    cause: { delivery: 'outcome unknown', server: 'demo', state: 'waiting' },
  });
  await expect(all.ask('taskResult', { id: ID })).rejects.toMatchObject({
    ...{ code: 'rejected', message: 'the server refused: full (-32099)', cause: { rpc: { code: -32_099 } } },
  });
});

test("who goes away while a result is waited for ends the waiting, and nobody else's", async () => {
  const signals: AbortSignal[] = [];
  await using all = await stage((signal) => {
    if (signal) signals.push(signal);
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  });
  const other = await connectControl(all.path);
  const [leaving, staying] = [all.ask('taskResult', { id: ID }), other.request('taskResult', { id: ID }).result];
  await eventually(() => signals.length === 2);
  all.control.close();
  await expect(leaving).rejects.toMatchObject({ code: 'lost' });
  await eventually(() => expect(signals.filter(({ aborted }) => aborted)).toHaveLength(1));
  other.close();
  await expect(staying).rejects.toMatchObject({ code: 'lost' });
  await eventually(() => expect(signals.filter(({ aborted }) => aborted)).toHaveLength(2));
});

test('who asks after the daemon has gone hears so at once', async () => {
  await using all = await stage();
  all.control.close();
  await expect(all.ask('taskGet', { id: ID })).rejects.toMatchObject({ code: 'lost' });
});
