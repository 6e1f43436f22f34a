// A call whose stream is cut is taken up where it was, when the server gave a place to come back to; when it gave none the
// caller is told that nobody knows. It is never sent a second time.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { answer, events, listen, remoteCast, said, scripted } from '../support/remote.ts';

const log = (data: string) =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } });
const lastId = (request: IncomingMessage) => request.headers['last-event-id'];
const split = (response: ServerResponse, text: string) => {
  for (const byte of Buffer.from(text)) response.write(Buffer.of(byte));
};

it('resumes from the last event after the pause that the server asked for', async () => {
  let cutAt = 0;
  const resumed: [string, number][] = [];
  const script = scripted({
    call({ response, message }) {
      events(response).write(`retry: 900\nid: s1\ndata:\n\nid: s2\ndata: ${log('first')}\n\n`);
      setTimeout(() => {
        cutAt = performance.now();
        response.end();
      }, 20);
      script.get = message.id;
    },
    get(request, response) {
      if (!lastId(request)) return response.writeHead(405).end();
      resumed.push([String(lastId(request)), performance.now() - cutAt]);
      events(response).end(`id: s3\ndata: ${log('second')}\n\nid: s4\ndata: ${answer(script.get, 'done')}\n\n`);
    },
  }) as ReturnType<typeof scripted> & { get?: unknown };
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  const { outcome, signals } = far.request('tools/call', { name: 'do', arguments: {} });
  expect(said(await outcome)).toBe('done');
  expect(signals.map((signal) => signal.type === 'log' && JSON.parse(String(signal.params)).data)).toEqual([
    'first',
    'second',
  ]);
  expect(resumed.map(([id]) => id)).toEqual(['s2']);
  expect(resumed[0]?.[1]).toBeGreaterThanOrEqual(895); // by itself it would have come after 500
  expect(script.of('tools/call')).toHaveLength(1);
});

it('keeps its session and its version when it resumes', async () => {
  let id: unknown;
  const script = scripted({
    call({ response, message }) {
      id = message.id;
      events(response).end('retry: 20\nid: a\ndata:\n\n');
    },
    get(request, response) {
      if (!lastId(request)) return response.writeHead(405).end();
      expect(request.headers).toMatchObject({ 'mcp-session-id': 'one', 'mcp-protocol-version': '2025-11-25' });
      events(response).end(`data: ${answer(id, 'done')}\n\n`);
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('done');
});

it('resumes again and again, also when the network is gone in between, until the deadline ends it', async () => {
  let attempts = 0;
  const script = scripted({
    call: ({ response }) => events(response).end('retry: 30\nid: a\ndata:\n\n'),
    get(request, response) {
      if (!lastId(request)) return response.writeHead(405).end();
      attempts++;
      if (attempts === 1) request.socket.destroy();
      else response.writeHead(503).end();
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do', {}, { timeoutMs: 2_500 }))).toBe('timeout, outcome unknown');
  expect(attempts).toBeGreaterThanOrEqual(3);
  expect(attempts).toBeLessThan(8);
  const before = attempts;
  expect(said(await far.call('do', {}, { timeoutMs: 200 }))).toBe('timeout, outcome unknown');
  expect(attempts - before).toBeLessThan(4);
  await eventually(() => expect(script.of('notifications/cancelled')).toHaveLength(2));
});

it.each([
  ['no event had an id', 'data: {}\n\n', 405, 'lost, outcome unknown'],
  ['the server does not know the place any more', 'retry: 20\nid: a\ndata:\n\n', 404, 'lost, outcome unknown'],
  ['the server has no streams to come back to', 'retry: 20\nid: a\ndata:\n\n', 405, 'lost, outcome unknown'],
])('ends as unknown when its stream was cut and %s', async (_, first, status, expected) => {
  const script = scripted({
    call: ({ response }) => events(response).end(first),
    get: (_request, response) => response.writeHead(status).end(),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do', {}, { timeoutMs: 5_000 }))).toBe(expected);
  expect(script.of('tools/call')).toHaveLength(1);
  expect(far.member.state).toBe('ready');
});

it('ends as unknown when the connection breaks in the middle of an event', async () => {
  const script = scripted({
    call({ response, request }) {
      events(response).write('data: {"jsonrpc":"2.0","id":');
      setTimeout(() => request.socket.destroy(), 30);
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('lost, outcome unknown');
});

it('reads an answer that comes byte by byte, with garbage before it', async () => {
  const script = scripted({
    call({ response, message }) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      split(response, `: hi\r\nbogus\r\rdata: not json\n\nevent: other\ndata: ${answer(message.id, 'no')}\n\n`);
      // The break falls between two tokens, where JSON may have one.
      split(response, `data: ${answer(message.id, 'grüße').replace(',"result"', '\ndata: ,"result"')}\r\n\r\n`);
      response.end();
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('grüße');
});

it('lets go of a stream that goes on after its answer', async () => {
  const script = scripted({
    call: ({ response, message }) => events(response).write(`data: ${answer(message.id, 'x')}\n\n`),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await Promise.all(Array.from({ length: 20 }, () => far.call('do')));
  await eventually(() => web.connections < 8, 5_000);
});

it('hears what belongs to no request on the standing stream, and opens it again where it ended', async () => {
  const places: (string | undefined)[] = [];
  const script = scripted({
    get(request, response) {
      places.push(lastId(request) as string | undefined);
      const turn = places.length;
      events(response).write(`retry: 50\nid: g${turn}\ndata: ${log(`news ${turn}`)}\n\n`);
      if (turn < 3) setTimeout(() => (turn === 1 ? response.end() : request.socket.destroy()), 20);
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await eventually(() => expect(far.heard.map(({ data }) => data)).toEqual(['news 1', 'news 2', 'news 3']));
  expect(places).toEqual([undefined, 'g1', 'g2']);
  expect(far.heard[0]?.audience).toEqual({ to: 'everyone' });
});

it.each(['application/json', 'text/event-stream'])(
  'passes the bytes of params and results as they are, in %s',
  async (type) => {
    const odd = '{"b":9007199254740993,"a":1.50,"b2":"\\u00e9","z":[]}';
    const script = scripted({
      call({ response, message }) {
        const body = `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[],"structuredContent":${odd}}}`;
        response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? body : `data: ${body}\n\n`);
      },
    });
    await using web = await listen(script);
    await using far = await remoteCast(web.url);
    await far.until('ready');
    const { outcome } = far.request('tools/call', `{"name":"do","arguments":${odd}}`);
    const answered = await outcome;
    expect(answered.ok && String(answered.result)).toBe(`{"content":[],"structuredContent":${odd}}`);
    expect(script.of('tools/call')[0]?.raw).toContain(`"arguments":${odd}`);
  },
);

it('reads a server that floods at its own pace, and answers calls meanwhile', async () => {
  const flood = `data: ${log('x'.repeat(50))}\n\n`.repeat(500);
  let isOver = false;
  const script = scripted({
    get(request, response) {
      events(response);
      const pour = (): void => void (!isOver && !request.destroyed && response.write(flood, () => setImmediate(pour)));
      pour();
    },
    call: ({ response, message }) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(answer(message.id, 'fine')),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  const started = performance.now();
  for (let turn = 0; turn < 20; turn++) expect(said(await far.call('do'))).toBe('fine');
  isOver = true;
  // Some two hundred lines a second are passed on, however many come.
  expect(far.heard.length).toBeLessThan(400 + (performance.now() - started));
});

it('comes back to a stream at a pace of its own, however soon the server wants it', async () => {
  const at: number[] = [];
  const script = scripted({
    get(_, response) {
      at.push(performance.now());
      events(response).end(`retry: 0\nid: e${at.length}\ndata: ${log('again')}\n\n`);
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await eventually(() => expect(at.length).toBeGreaterThanOrEqual(4));
  for (const [index, time] of at.slice(1).entries()) expect(time - (at[index] ?? 0)).toBeGreaterThanOrEqual(240);
});
