// What a session makes of its host's tasks: what it orders, what it answers, whom it asks, and when it stops to wait.

import { describe, expect, test } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import type { TaskSupport } from '../../src/catalog/task-support.ts';
import { errorFrame } from '../../src/protocol/compose.ts';
import { codecOf, type Era } from '../../src/protocol/eras.ts';
import { createHostTasks } from '../../src/sessions/host-tasks.ts';
import type { Identity, SessionPorts } from '../../src/sessions/ports.ts';
import { createQuestions } from '../../src/sessions/questions.ts';
import { errorOf } from '../../src/sessions/targets.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { orderedTasks } from '../support/ordered-tasks.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const ASK = {
  method: 'elicitation/create',
  params: Buffer.from(
    `{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"x":1.0,"${RELATED}":{"taskId":"theirs"}}}`,
  ),
};
const bytes = (value: object | string) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const parsed = (frame: Buffer | undefined) => frame && JSON.parse(frame.toString());
const done = (result: string) => ({ ok: true as const, result: Buffer.from(result), isError: false });

/** A host that sees the server `s` under its own names, or all servers at once. */
function host({ scope = 's', era = '2025-11-25' as Era, support = undefined as TaskSupport | undefined } = {}) {
  const little = orderedTasks();
  const open = { count: 0 };
  const delivered: any[] = [];
  const identity: Identity = {
    ...{ id: 'session', principal: 'p', door: 'http', scope, era, level: undefined },
    capabilities: codecOf(era).clientCapabilities({ elicitation: {} }),
  };
  const questions = createQuestions(identity, (frame) => delivered.push(parsed(frame)), realWorld);
  const ports = { world: realWorld, ...little, scopes: { taskSupport: () => support } } as unknown as SessionPorts;
  const presence = { enter: () => void open.count++, leave: () => void open.count-- };
  const tasks = createHostTasks({
    ...{ ports, presence, identity, questions, viewer: { scope, principal: 'p', session: 'session' } },
    view: () => ({ find: (_: string, name: string) => ({ server: 's', name: name.replace('s__', '') }) }) as any,
    isLoud: (_, level) => level !== 'debug',
    deliver: (frame) => void delivered.push(parsed(frame)),
    hasListener: () => true,
  });
  function request(id: string, method: string, params: object | string = {}) {
    const [told, answers]: [any[], any[]] = [[], []];
    const line = {
      tell: (frame: Buffer) => void (answers.length === 0 ? told.push(parsed(frame)) : expect.fail('told too late')),
      answer: (frame: Buffer) => void answers.push(parsed(frame)),
    };
    try {
      void tasks.perform(method, bytes(params), { id, line })?.then(
        (result) => answers.push({ result: parsed(result) }),
        (error) => line.answer(errorFrame(id, errorOf(error))),
      );
    } catch (error) {
      line.answer(errorFrame(id, errorOf(error)));
    }
    return { told, answers, answer: () => eventually(() => answers[0] ?? false) };
  }
  const create = async (params: object | string): Promise<any> => parsed(await tasks.create(bytes(params)));
  return { ...little, open, tasks, questions, request, create, delivered };
}

describe('a call with task', () => {
  test('is ordered without it, with every other byte, and answered with the task and what to tell the model', async () => {
    const { create, orders } = host();
    const { task, _meta } = await create(
      '{"name":"t","arguments":{"big":12345678901234567890},"task":{"ttl":5000.2},"_meta":{"progressToken":"p\\u0031","troupe/idempotency-key":"k"}}',
    );
    expect(orders).toMatchObject([
      {
        principal: 'p',
        server: 's',
        tool: 't',
        session: 'session',
        ttlMs: 5001,
        key: 'k',
      },
    ]);
    expect(orders[0]?.params.toString()).toBe(
      '{"name":"t","arguments":{"big":12345678901234567890},"_meta":{"progressToken":"p\\u0031","troupe/idempotency-key":"k"}}',
    );
    expect(Object.keys(task).sort()).toEqual(['createdAt', 'lastUpdatedAt', 'pollInterval', 'status', 'taskId', 'ttl']);
    expect(_meta['io.modelcontextprotocol/model-immediate-response']).toMatch(/t of s .* task-1/);
  });

  test('wants an object with a ttl that is a number and not negative, or none', async () => {
    const { create, orders } = host();
    for (const task of [
      'null',
      '[]',
      '"x"',
      '1',
      '{"ttl":-1}',
      '{"ttl":"1"}',
      '{"ttl":null}',
      '{"ttl":1,"ttl":2}',
      '{"ttl":{}}',
    ])
      await expect(create(`{"name":"t","task":${task}}`), task).rejects.toMatchObject({ code: 'invalid' });
    await expect(create('{"name":"t","task":{},"task":{}}')).rejects.toMatchObject({ code: 'invalid' });
    await expect(create({ name: 't', task: {}, _meta: { 'troupe/idempotency-key': 7 } })).rejects.toMatchObject({
      code: 'invalid',
    });
    expect(orders).toEqual([]);
    for (const ttl of [0, 1e300]) await create({ name: 't', task: { ttl } });
    await create('{"name":"t","\\u0074ask":{}}');
    expect(orders.map(({ ttlMs }) => ttlMs)).toEqual([0, Number.MAX_SAFE_INTEGER, undefined]);
    expect(orders.at(-1)?.params.toString()).toBe('{"name":"t"}');
  });

  test.each([
    ['forbidden', false],
    ['optional', true],
    ['required', true],
    [undefined, true],
  ] as const)('of a tool whose server says %s is taken: %s', async (support, isTaken) => {
    const made = host({ support }).create({ name: 't', task: {} });
    if (isTaken) await expect(made).resolves.toBeDefined();
    else await expect(made).rejects.toMatchObject({ code: 'unsupported' });
  });

  test('is a task only for who knows what tasks are', () => {
    const params = bytes({ name: 't', task: {} });
    for (const each of [params, bytes('{"\\u0074ask":{}}')]) expect(host().tasks.isWanted(each)).toBe(true);
    expect(host().tasks.isWanted(bytes({ name: 't', arguments: { task: {} } }))).toBe(false);
    expect(host({ era: '2025-06-18' }).tasks.isWanted(params)).toBe(false);
    const { request } = host({ era: '2025-06-18' });
    expect(request('1', 'tasks/list').answers).toMatchObject([{ error: { code: -32601 } }]);
  });
});

describe('who waits for a result', () => {
  test('gets the bytes of the result with the id of the task, in place of one that the server wrote', async () => {
    const { create, request, end, attending, open } = host();
    await create({ name: 't', task: {} });
    const waiting = request('7', 'tasks/result', { taskId: 'task-1' });
    expect(open.count).toBe(1);
    end('task-1', done(`{"content":[],"_meta":{"${RELATED}":{"taskId":"theirs"},"y":2}}`));
    expect(await waiting.answer()).toEqual({
      ...{ jsonrpc: '2.0', id: 7 },
      result: { content: [], _meta: { [RELATED]: { taskId: 'task-1' }, y: 2 } },
    });
    expect([open.count, attending.size]).toEqual([0, 0]);
  });

  test('gets the very error of the call', async () => {
    const { create, request, end } = host();
    await create({ name: 't', task: {} });
    const waiting = request('7', 'tasks/result', { taskId: 'task-1' });
    const error = bytes('{"code":-32099,"message":"no","data":[1.0]}');
    end('task-1', { ok: false, failure: { code: 'rejected', delivery: 'failed', message: 'no', error } });
    expect(await waiting.answer()).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: -32099, message: 'no', data: [1] },
    });
  });

  test.each(['leave', 'leaveAll'] as const)('is let go by %s, and the task is not cancelled', async (how) => {
    const { create, request, tasks, questions, ask } = host();
    await create({ name: 't', task: {} });
    const waiting = request('"a"', 'tasks/result', { taskId: 'task-1' });
    const { answers } = ask('task-1', ASK);
    const [{ id }] = waiting.told;
    if (how === 'leave') expect([tasks.leave('"b"'), tasks.leave('"a"')]).toEqual([false, true]);
    else tasks.leaveAll('the session has ended');
    expect(await waiting.answer()).toMatchObject({
      id: 'a',
      error: { message: expect.stringMatching(/the task goes on/) },
    });
    expect(waiting.told.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: id } });
    expect(questions.answered(JSON.stringify(id), { ok: true, result: bytes({ action: 'accept' }) })).toBe(false);
    expect(answers).toEqual([]);
    expect((await request('2', 'tasks/get', { taskId: 'task-1' }).answer()).result.status).toBe('working');
  });

  test('is asked on that line with the id of the task, and its answer goes without it', async () => {
    const { create, request, ask, questions } = host();
    await create({ name: 't', task: {} });
    const waiting = request('1', 'tasks/result', { taskId: 'task-1' });
    const { answers } = ask('task-1', ASK);
    const [{ id, method, params }] = waiting.told;
    expect([method, params.message]).toEqual(['elicitation/create', 'Who?']);
    expect(params._meta).toEqual({ x: 1, [RELATED]: { taskId: 'task-1' } });
    const given = bytes({ action: 'accept', content: {}, _meta: { [RELATED]: { taskId: 'task-1' } } });
    questions.answered(JSON.stringify(id), { ok: true, result: given });
    expect(answers.map((each) => each.ok && parsed(each.result))).toEqual([{ action: 'accept', content: {} }]);
  });

  test.each(['', '@profile', 'another'])('is told whose words they are at the endpoint %j', async (scope) => {
    const { create, request, ask } = host({ scope });
    await create({ name: 's__t', task: {} });
    const waiting = request('1', 'tasks/result', { taskId: 'task-1' });
    ask('task-1', ASK);
    expect(waiting.told[0].params.message).toBe('s asks: Who?');
  });

  test('is not asked what it cannot answer', async () => {
    const { create, request, ask, orders } = host();
    await create({ name: 't', task: {} });
    const waiting = request('1', 'tasks/result', { taskId: 'task-1' });
    expect(ask('task-1', { ...ASK, method: 'sampling/createMessage' }).askings).toEqual([undefined]);
    expect(waiting.told).toEqual([]);
    const can = ['elicitation/create', 'sampling/createMessage'].map((each) =>
      orders[0]?.canAnswer?.(each, ASK.params),
    );
    expect(can).toEqual([true, false]);
  });
});

describe('what a session is told of its tasks', () => {
  const view = async ({ create, request }: ReturnType<typeof host>): Promise<TaskView> => {
    await create({ name: 't', task: {} });
    return { ...(await request('0', 'tasks/get', { taskId: 'task-1' }).answer()).result, server: 's', tool: 't' };
  };
  const log = (level: string) => ({ type: 'log' as const, level, params: bytes({ level, data: 'x' }) });

  test('is the whole task when its status changes, and what its call says under its own token', async () => {
    const it = host();
    const task = await view(it);
    it.tasks.tell({ task });
    it.tasks.tell({ task, progressToken: '"p"', signal: { type: 'progress', progress: 1, total: 2, message: 'm' } });
    it.tasks.tell({ task, signal: { type: 'progress', progress: 2 } });
    for (const level of ['debug', 'error']) it.tasks.tell({ task, signal: log(level) });
    const _meta = { [RELATED]: { taskId: 'task-1' } };
    const { server, tool, ...shown } = task;
    expect(it.delivered).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tasks/status', params: shown },
      {
        ...{ jsonrpc: '2.0', method: 'notifications/progress' },
        params: { progressToken: 'p', progress: 1, total: 2, message: 'm', _meta },
      },
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 'x', _meta } },
    ]);
  });

  test('comes on the line of who waits for it, and afterwards as news', async () => {
    const it = host();
    const task = await view(it);
    const waiting = it.request('1', 'tasks/result', { taskId: 'task-1' });
    it.tasks.tell({ task });
    expect([waiting.told.length, it.delivered.length]).toEqual([1, 0]);
    it.end('task-1', done('{"content":[]}'));
    await waiting.answer();
    it.tasks.tell({ task });
    expect([waiting.told.length, it.delivered.length]).toEqual([1, 1]);
  });
});
