// What a server may not do with tasks, and what of its wishes is granted: each refusal is the code that the specification has
// for it, and nobody is asked. What one process asked is unknown to every other.

import { describe, expect, it, vi } from 'vitest';
import { FORM, SAMPLING } from '../support/asks.ts';
import { augmentedStage } from '../support/augmented.ts';
import { eventually } from '../support/eventually.ts';

const OPERATIONS = ['tasks/get', 'tasks/result', 'tasks/cancel'];
const UNKNOWN_ID = '0'.repeat(32);

describe('a task id', () => {
  it.each(OPERATIONS)('that is none is refused by %s, however it is spelled', async (method) => {
    await using s = await augmentedStage();
    for (const params of [
      {},
      { taskId: UNKNOWN_ID },
      { taskId: '' },
      { taskId: 7 },
      { taskId: ['a'] },
      { taskId: null },
    ])
      expect((await s.ask(method, params)).error).toMatchObject({ code: -32602, message: expect.any(String) });
    s.session.receive(
      Buffer.from(`{"jsonrpc":"2.0","id":"twice","method":"${method}","params":{"taskId":"a","taskId":"b"}}`),
    );
    expect((await s.answerTo('twice')).error.code).toBe(-32602);
    s.say({ id: 'bare', method });
    expect((await s.answerTo('bare')).error.code).toBe(-32602);
  });

  it('of another server, or of another process of the same one, is exactly like an unknown one', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    const strangers = [
      s.peer({ name: 'alpha@bob', principal: 'bob' }),
      s.peer({ name: 'beta', server: 'beta' }),
      s.peer(), // a further process of the pool
    ];
    s.call();
    const { taskId } = await s.begin();
    for (const stranger of strangers) {
      for (const method of OPERATIONS) {
        const [one, other] = [
          await stranger.ask(method, { taskId }),
          await stranger.ask(method, { taskId: UNKNOWN_ID }),
        ];
        expect(one.error).toEqual(other.error);
        expect(one.error.code).toBe(-32602);
      }
      expect((await stranger.ask('tasks/list')).result).toEqual({ tasks: [] });
    }
    expect(await s.get(taskId)).toMatchObject({ status: 'working' });
    expect((await s.ask('tasks/list')).result.tasks.map((each: any) => each.taskId)).toEqual([taskId]);
  });

  it('cannot be guessed by asking for very many, and that keeps no question from being asked', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    vi.useFakeTimers({ toFake: ['performance'] }); // all within one second, however slow this machine is
    for (let n = 0; n < 6_000; n++) s.say({ id: n, method: 'tasks/get', params: { taskId: UNKNOWN_ID } });
    vi.useRealTimers();
    const codes = new Set(s.said.map(({ error }) => error?.code));
    expect(codes).toEqual(new Set([-32602, -32603]));
    expect((await s.begin()).status).toBe('working');
  });

  it('is found by its parameter alone, whatever the metadata says', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const { taskId } = await s.begin();
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: UNKNOWN_ID } };
    expect((await s.ask('tasks/get', { taskId, _meta })).result).toMatchObject({ taskId });
    _meta['io.modelcontextprotocol/related-task'].taskId = taskId;
    expect((await s.ask('tasks/get', { taskId: UNKNOWN_ID, _meta })).error.code).toBe(-32602);
  });
});

describe('tasks/list', () => {
  it('gives all in pages, in the order they were asked, and each of them once', async () => {
    const rules = [{ answer: 'decline' }];
    await using s = await augmentedStage({ canAnswer: false, asks: { rules } });
    s.call();
    const ids: string[] = [];
    for (const { taskId } of await Promise.all(Array.from({ length: 230 }, () => s.begin()))) ids.push(taskId);
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const { result } = await s.ask('tasks/list', cursor === undefined ? {} : { cursor });
      pages.push(result.tasks.map((each: any) => each.taskId));
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual([100, 100, 30]);
    expect(pages.flat()).toEqual(ids);
  });

  it('refuses a cursor that it never gave', async () => {
    await using s = await augmentedStage();
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    const made = ['x', '', '=', encoded('after 1'), encoded('after -1'), encoded('after 00'), 7, null, {}];
    for (const cursor of made)
      expect((await s.ask('tasks/list', { cursor })).error, String(cursor)).toMatchObject({ code: -32602 });
  });
});

describe('the time that a server wishes for its task', () => {
  it.each([
    [{}, 360_000],
    [{ ttl: null }, 360_000],
    [{ ttl: 1e12 }, 360_000],
    [{ ttl: 20_000.4 }, 20_000],
    [{ ttl: 90_000, other: [1] }, 90_000],
  ])('%j is %i ms: as it says, but not longer than there is use for it', async (task, ttl) => {
    await using s = await augmentedStage({ canAnswer: false, asks: { timeoutMs: 60_000 } });
    s.call();
    expect((await s.begin(FORM, task)).ttl).toBe(ttl);
    const { openedAt, expiresAt } = await s.theAsk();
    expect(expiresAt - openedAt).toBeLessThan(ttl); // so that there is time left to fetch it
  });

  it.each(['{"ttl":"60000"}', '{"ttl":0}', '{"ttl":-5}', '{"ttl":{}}', '{"ttl":1,"ttl":2}', '7', 'null', '[]', '"x"'])(
    '%s is none, and nobody is asked',
    async (task) => {
      await using s = await augmentedStage();
      s.call();
      const params = `{"message":"?","requestedSchema":{"type":"object","properties":{}},"task":${task}}`;
      s.session.receive(Buffer.from(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":${params}}`));
      expect((await s.answerTo('q')).error).toMatchObject({ code: -32602 });
      expect([s.asked, s.asks.inbox.list(), (await s.ask('tasks/list')).result.tasks]).toEqual([[], [], []]);
    },
  );

  it('is a second at least; when it is over the task is gone, and so is its question', async () => {
    await using s = await augmentedStage({ canAnswer: false });
    s.call();
    const { taskId, ttl } = await s.begin(FORM, { ttl: 1 });
    expect(ttl).toBe(1_000);
    await eventually(async () => (await s.get(taskId)).code === -32602, 15_000);
    expect([s.asks.inbox.list(), (await s.ask('tasks/list')).result.tasks]).toEqual([[], []]);
    expect(s.closed.map(({ ending }) => ending.outcome)).toEqual(['expired']);
  });
});

describe('a question that cannot be asked is refused at once, and no task is made', () => {
  it.each([
    ['elicitation/create', { message: '?', requestedSchema: { type: 'array' } }, -32602],
    ['elicitation/create', { mode: 'voice', message: '?' }, -32602],
    ['sampling/createMessage', { messages: [], maxTokens: 1 }, -32602],
    ['roots/unlist', {}, -32601],
    ['tasks/update', {}, -32601],
  ])('%s %j', async (method, params, code) => {
    await using s = await augmentedStage();
    s.call();
    expect((await s.ask(method, { ...params, task: {} })).error.code).toBe(code);
    expect((await s.ask('tasks/list')).result.tasks).toEqual([]);
  });

  it.each([
    ['elicitation/create', FORM, -32603],
    ['sampling/createMessage', SAMPLING, -1],
  ])('%s, because it is nobody’s', async (method, params, code) => {
    await using s = await augmentedStage({ settings: { share: 'all' } });
    expect((await s.ask(method, { ...params, task: {} })).error).toMatchObject({ code });
    expect((await s.ask('tasks/list')).result.tasks).toEqual([]);
  });

  it('because too many are open', async () => {
    await using s = await augmentedStage({ canAnswer: false, asks: { maxOpen: 2 } });
    s.call();
    const [first] = [await s.begin(), await s.begin()];
    expect((await s.ask('elicitation/create', { ...FORM, task: {} })).error.code).toBe(-32603);
    expect((await s.ask('tasks/list')).result.tasks).toHaveLength(2);
    await s.ask('tasks/cancel', { taskId: first.taskId });
    await s.begin();
    // Neither may another server, though it has no task yet.
    const other = s.peer({ name: 'beta', server: 'beta' });
    expect((await other.ask('elicitation/create', { ...FORM, task: {} })).error.code).toBe(-32603);
    expect((await other.ask('tasks/list')).result.tasks).toEqual([]);
  });

  it('because nothing can be recorded now', async () => {
    await using s = await augmentedStage();
    s.call();
    await s.store.close();
    const { error } = await s.ask('elicitation/create', { ...FORM, task: {} });
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining('record') });
    expect([s.asked, (await s.ask('tasks/list')).result.tasks]).toEqual([[], []]);
    expect(s.closed.map(({ ending }) => ending.outcome)).toEqual(['withdrawn']);
  });
});
