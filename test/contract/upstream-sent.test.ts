// Which calls a server with tasks of its own gets as tasks: those of tools that want it so, and those whose caller lets it
// where the tool can. To the caller it is a call like any other, and every byte that is not about the task is as it was.

import { expect, it } from 'vitest';
import { listen, remoteCast, said } from '../support/remote.ts';
import { boardCast, DONE, deferred, soon, taskBoard, text, tool } from '../support/task-board.ts';

it('calls a tool that must be a task as one, and answers with what the task came to, byte for byte', async () => {
  const result =
    '{ "content":[ {"type":"text","text":"d\\u006fne"} ], "_meta" : { "n": 1e2 }, "big":12345678901234567890 }';
  await using s = await boardCast({
    methods: {
      'tasks/result': (_, { id }, response) => {
        const related = `"io.modelcontextprotocol/related-task":{"taskId":"task-1"}`;
        const marked = result.replace('"n"', `${related}, "n"`);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"jsonrpc":"2.0","id":${id},"result":${marked}}`);
      },
    },
  });
  const outcome = await s.far.call('do');
  expect(outcome).toMatchObject({ ok: true, isError: false });
  expect(outcome.ok && outcome.result.toString()).toBe(result);
  expect(s.sent('tools/call')).toEqual([expect.objectContaining({ name: 'do', task: { ttl: expect.any(Number) } })]);
  expect(s.sent('tools/call')[0].task.ttl).toBeGreaterThan(590_000); // the longest that the call may take
});

it('leaves the rest of the params alone', async () => {
  await using s = await boardCast();
  const params =
    '{"name":"do", "arguments" : {"n":1e2,"s":"\\u0041"},"task":{"ttl":"mine"},"_meta":{"x":12345678901234567890}}';
  const { outcome } = s.far.request('tools/call', params, { ttlMs: 5_000 });
  const task = await s.task();
  const [call] = s.handle.of('tools/call');
  const id = JSON.parse(call?.raw ?? '').id;
  const expected = params
    .replace('{"ttl":"mine"}', '{"ttl":5000}')
    .replace('"_meta":{', `"_meta":{"progressToken":${id},`);
  expect(call?.raw).toBe(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${expected}}`);
  task.end(DONE);
  expect(said(await outcome)).toBe('done');
});

it('lets a tool that may be a task be one only where the caller wants it, whatever the params say', async () => {
  await using s = await boardCast();
  const smuggled = { name: 'may', arguments: {}, task: { ttl: 1 } };
  expect(said(await s.far.request('tools/call', smuggled).outcome)).toBe('plain');
  expect(said(await s.far.request('tools/call', { ...smuggled, name: 'no' }, { ttlMs: 9_000 }).outcome)).toBe('plain');
  expect(s.sent('tools/call').map(({ task }) => task)).toEqual([undefined, undefined]);
  const { outcome } = s.far.request('tools/call', smuggled, { ttlMs: 9_000 });
  const task = await s.task();
  expect(s.sent('tools/call').at(-1).task).toEqual({ ttl: 9_000 });
  task.end(DONE);
  expect(said(await outcome)).toBe('done');
});

it.each([
  ['declares no tasks', {}],
  ['declares none for tools', { tasks: { list: {}, cancel: {} } }],
  ['declares what is none', { tasks: { requests: { tools: { call: true } } } }],
])('makes no task at a server that %s', async (_, capabilities) => {
  await using s = await boardCast({ capabilities });
  expect(said(await s.far.call('do', {}, { ttlMs: 9_000 }))).toBe('plain');
  expect(s.sent('tools/call')[0].task).toBeUndefined();
});

it('makes no task at a server that speaks an older version', async () => {
  const capabilities = { tools: {}, tasks: { requests: { tools: { call: {} } } } };
  const initialize = () => ({ protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'old', version: '1' } });
  await using s = await boardCast({ methods: { initialize } });
  expect(said(await s.far.call('do', {}, { ttlMs: 9_000 }))).toBe('plain');
  expect(s.sent('tools/call')[0].task).toBeUndefined();
});

it('takes an answer that is no task for what it is', async () => {
  await using s = await boardCast({
    methods: { 'tools/call': ({ name }) => (name === 'do' ? { ...text('at once'), task: { taskId: 't' } } : text('')) },
  });
  expect(said(await s.far.call('do'))).toBe('at once');
  expect(s.handle.of('tasks/result')).toEqual([]);
});

it('waits until a server that has just opened has said which of its tools are tasks', async () => {
  const listed = deferred<object>();
  const handle = taskBoard({ methods: { 'tools/list': () => listed.promise } });
  await using web = await listen(handle);
  await using far = await remoteCast(web.url, { settings: { trust: true } }); // nobody looks at its tools before
  await far.until('ready');
  const early = far.call('do');
  const second = far.request('tools/call', { name: 'do' }, { isCancellable: true, requestId: 'second' });
  await soon(() => expect(far.member.lane.inFlight).toBe(2));
  far.fleet.cancel('_', 'second', 'enough');
  expect(said(await second.outcome)).toBe('cancelled, outcome unknown');
  expect(handle.of('tools/call')).toEqual([]);
  listed.resolve({ tools: [tool('do', 'required')] });
  await soon(() => expect(handle.tasks).toHaveLength(1));
  handle.tasks[0]?.end(DONE);
  expect(said(await early)).toBe('done');
  expect(handle.of('tools/call')).toHaveLength(1);
  expect(handle.of('notifications/cancelled')).toEqual([]);
});
