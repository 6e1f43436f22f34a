// HTTP+SSE for hosts of 2024-11-05: the endpoint comes first, posts are taken with 202, everything else comes on the stream.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Door, door, listenTo } from '../support/http-door.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const frame = (message: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const initialize = (version = '2024-11-05') => ({
  ...{ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: version } },
});
const open = (d: Door, path = '/sse', headers = {}) =>
  listenTo(`${d.url}${path}`, { method: 'GET', headers: { accept: 'text/event-stream', ...headers } });

async function begun(d: Door, path = '/sse', version?: string) {
  const stream = await open(d, path);
  await eventually(() => expect(stream.events[0]?.event).toBe('endpoint'));
  const endpoint = stream.events[0]?.data ?? '';
  const send = (message: object | string, headers = {}) =>
    d.ask('POST', endpoint, { ...JSON_TYPE, ...headers }, message);
  const answers = () => stream.events.slice(1).map(({ data = '' }) => JSON.parse(data));
  expect((await send(initialize(version))).status).toBe(202);
  await eventually(() =>
    expect(answers()[0]).toMatchObject({ id: 0, result: { protocolVersion: version ?? '2024-11-05' } }),
  );
  return { stream, endpoint, send, answers };
}

describe('HTTP+SSE', () => {
  it('carries a session of the official client', async () => {
    await using d = await door();
    const client = new Client({ name: 't', version: '1' });
    const done = client.connect(new SSEClientTransport(new URL(`${d.url}/sse/files`)));
    await done.catch(() => {}); // our sessions are no server: it misses serverInfo
    expect(d.received.length).toBe(0);
    const { send, answers } = await begun(d, '/sse/files');
    expect((await send({ jsonrpc: '2.0', id: 'x', method: 'echo', params: { a: 1 } })).text).toBe('');
    await eventually(() => expect(answers()[1]).toEqual({ jsonrpc: '2.0', id: 'x', result: { a: 1 } }));
    expect(d.sessions.find(d.received[0]?.session ?? '', '_')).toMatchObject({ door: 'sse', scope: 'files' });
    await client.close();
  });

  it('brings progress, answers and unasked messages on the one stream, in order', async () => {
    await using d = await door();
    const { send, answers } = await begun(d);
    await send({ jsonrpc: '2.0', id: 1, method: 'slow' });
    const line = d.waiting[0]!.line;
    line.tell(frame({ method: 'notifications/progress' }));
    [...d.sends.values()][0]?.(frame({ method: 'notifications/tools/list_changed' }));
    line.answer(frame({ id: 1, result: {} }));
    await eventually(() => expect(answers().length).toBe(4));
    expect(
      answers()
        .slice(1)
        .map(({ method, id }) => method ?? id),
    ).toEqual([...['notifications/progress', 'notifications/tools/list_changed', 1]]);
  });

  it('ends the session with the stream', async () => {
    await using d = await door();
    const { stream, send } = await begun(d);
    expect([d.sessions.count, d.held.count]).toEqual([1, 1]);
    stream.leave();
    await eventually(() => expect([d.sessions.count, d.held.count, d.sends.size]).toEqual([0, 0, 0]));
    expect((await send({ jsonrpc: '2.0', id: 1, method: 'echo' })).status).toBe(404);
  });

  it('cancels nothing when the stream is lost: the session ends after its last call', async () => {
    await using d = await door();
    const { stream, send } = await begun(d);
    await send({ jsonrpc: '2.0', id: 1, method: 'slow' });
    stream.leave();
    await eventually(() => expect(d.held.count).toBe(0));
    expect(d.sessions.count).toBe(1);
    d.waiting[0]?.line.answer(frame({ id: 1, result: {} }));
    await eventually(() => expect(d.sessions.count).toBe(0));
  });

  it('closes the stream when the session was ended elsewhere, after what is owed was said', async () => {
    await using d = await door();
    const { stream, send } = await begun(d);
    await send({ jsonrpc: '2.0', id: 1, method: 'slow' });
    const { session = '', line } = d.waiting[0] ?? {};
    await d.sessions.find(session, '_')?.end();
    expect((await send({ jsonrpc: '2.0', id: 2, method: 'echo' })).status).toBe(202);
    await eventually(() => expect(stream.text).toContain('the session has ended; begin a new one'));
    expect(stream.isOver).toBe(false);
    line?.answer(frame({ id: 1, error: { code: -32014, message: 'cancelled' } }));
    await eventually(() => stream.isOver);
    expect(stream.text).toContain('"id":1,"error"');
    await eventually(() => expect(d.held.count).toBe(0));
  });

  it('has only so many streams for each principal', async () => {
    await using d = await door({ settings: { maxSessions: 1, tokens: { ann: 'secret' } } });
    const first = await open(d);
    const refused = await open(d);
    expect([first.status, refused.status]).toEqual([200, 429]);
    const ann = await open(d, '/sse', { authorization: 'Bearer secret' });
    expect(ann.status).toBe(200);
    first.leave();
    await eventually(async () => expect((await open(d)).status).toBe(200));
  });

  it('refuses what it cannot take', async () => {
    await using d = await door({ settings: { tokens: { ann: 'secret' } } });
    const { endpoint, send, answers } = await begun(d);
    expect((await d.ask('GET', '/sse', { accept: 'application/json' })).status).toBe(406);
    expect((await d.ask('GET', '/sse/nobody', { accept: 'text/event-stream' })).status).toBe(404);
    expect((await d.ask('POST', endpoint, { 'content-type': 'text/plain' }, '{}')).status).toBe(415);
    expect((await d.ask('POST', '/messages?sessionId=x', JSON_TYPE, '{}')).status).toBe(404);
    expect((await d.ask('POST', '/messages', JSON_TYPE, '{}')).status).toBe(404);
    expect((await send('{"jsonrpc"')).json.error.code).toBe(-32700);
    expect((await send({ jsonrpc: '2.0', id: 1, method: 'echo' }, { authorization: 'Bearer secret' })).status).toBe(
      404,
    );
    await send({ ...initialize(), id: 5 });
    await send([{ jsonrpc: '2.0', id: 1, method: 'echo' }]);
    await eventually(() =>
      expect(
        answers()
          .slice(1)
          .map(({ id, error }) => [id, error.code]),
      ).toEqual([
        [5, -32600],
        [null, -32600],
      ]),
    );
    expect((await send({ text: 'x'.repeat(70_000) })).status).toBe(413);
    const fresh = await open(d);
    await eventually(() => expect(fresh.events.length).toBe(1));
    const early = { jsonrpc: '2.0', id: 1, method: 'echo' };
    expect((await d.ask('POST', fresh.events[0]?.data ?? '', JSON_TYPE, early)).status).toBe(202);
    await eventually(() => expect(fresh.text).toContain('the first request must be initialize'));
    expect(d.received).toEqual([]);
  });

  it('answers batches as one for the era that has them, and says why a session did not open', async () => {
    await using d = await door();
    const { send, answers } = await begun(d, '/sse', '2025-03-26');
    expect(
      (
        await send([
          { jsonrpc: '2.0', id: 1, method: 'echo' },
          { jsonrpc: '2.0', id: 2 },
        ])
      ).status,
    ).toBe(202);
    await eventually(() =>
      expect(answers()[1]?.map(({ id, error }: any) => [id, error?.code])).toEqual([
        [1, undefined],
        [2, -32600],
      ]),
    );
    const second = await open(d);
    await eventually(() => expect(second.events.length).toBe(1));
    await d.ask('POST', second.events[0]?.data ?? '', JSON_TYPE, { ...initialize(), params: {} });
    await eventually(() => expect(second.text).toContain('initialize needs a protocolVersion'));
  });
});
