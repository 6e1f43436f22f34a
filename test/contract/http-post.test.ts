// POST /mcp, rule by rule: what is refused with which status, and what is answered how.

import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { BOTH, door } from '../support/http-door.ts';

const echo = (id: number | string = 1, params: object = {}) => ({ jsonrpc: '2.0', id, method: 'echo', params });
const INITIALIZE = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
const frame = (message: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

describe('a POST is refused', () => {
  const json = { 'content-type': 'application/json' };
  const cases: [why: string, status: number, code: number, headers: Record<string, string>, body: string | object][] = [
    ['that is no JSON by its type', 415, -32600, { accept: BOTH, 'content-type': 'text/plain' }, echo()],
    ['whose type only begins like JSON', 415, -32600, { accept: BOTH, 'content-type': 'application/jsonp' }, echo()],
    ['that takes no events', 406, -32600, { ...json, accept: 'application/json' }, echo()],
    ['that takes no JSON', 406, -32600, { ...json, accept: 'text/event-stream' }, echo()],
    ['that says nothing of what it takes', 406, -32600, json, echo()],
    ['of a version that we do not speak', 400, -32600, { 'mcp-protocol-version': '2031-01-01' }, echo()],
    ['that is too large', 413, -32015, {}, echo(1, { text: 'x'.repeat(70_000) })],
    ['that is no JSON', 400, -32700, {}, '{"jsonrpc":"2.0","id":1,'],
    ['that is empty', 400, -32700, {}, ''],
    ['that is no JSON-RPC', 400, -32600, {}, { jsonrpc: '1.0', id: 7, method: 'echo' }],
    ['with positional params', 400, -32600, {}, { jsonrpc: '2.0', id: 7, method: 'echo', params: [] }],
    ['without a session', 400, -32600, { 'mcp-session-id': '' }, echo()],
    ['with an unknown session', 404, -32600, { 'mcp-session-id': 'ab'.repeat(16) }, echo()],
    ['that initializes a session again', 400, -32600, {}, INITIALIZE],
    ['that is a batch of an era without batches', 400, -32600, {}, [echo()]],
  ];

  it.each(cases)('%s: %i, %i', async (_, status, code, headers, body) => {
    await using d = await door();
    const mine = await d.enter();
    if (headers['mcp-session-id'] === '') delete (mine as any)['mcp-session-id'];
    const wanted = 'content-type' in headers ? headers : { ...json, accept: BOTH, ...headers };
    const answer = await d.ask('POST', '/mcp', { ...mine, ...withoutEmpty(wanted) }, body);
    expect([answer.status, answer.json?.error.code]).toEqual([status, code]);
    expect(answer.json).toMatchObject({ jsonrpc: '2.0' });
    expect(answer.json.error.message).not.toMatch(/\n|at .*\.[jt]s/);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(d.received).toEqual([]);
  });

  it('with the id of its request, where that can be read', async () => {
    await using d = await door();
    expect((await d.post({ jsonrpc: '1.0', id: 'seven', method: 'echo' })).json.id).toBe('seven');
    expect((await d.post(echo(9))).json.id).toBe(9);
    expect((await d.post('[')).json.id).toBe(null);
    const versions = (await d.post(echo(), { 'mcp-protocol-version': '1' })).json.error.message;
    expect(versions).toContain('2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25');
  });

  it('at another endpoint than the session was opened at', async () => {
    await using d = await door();
    const files = await d.enter('2025-11-25', {}, '/mcp/files');
    expect((await d.post(echo(), files, '/mcp/files')).status).toBe(200);
    for (const path of ['/mcp', '/mcp/@small']) expect((await d.post(echo(), files, path)).status, path).toBe(404);
  });

  it('when its chunks become too large, and the connection is not needed for it any more', async () => {
    await using d = await door();
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    expect(
      await d.raw(`${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}0\r\n\r\n`),
    ).toMatch(/^HTTP\/1.1 413/);
  });
});

describe('other paths and methods', () => {
  it.each([
    ['PUT', '/mcp', 405, 'GET, POST, DELETE, OPTIONS'],
    ['PATCH', '/mcp/files', 405, 'GET, POST, DELETE, OPTIONS'],
    ['HEAD', '/mcp', 405, 'GET, POST, DELETE, OPTIONS'],
    ['POST', '/sse', 405, 'GET, OPTIONS'],
    ['GET', '/messages', 405, 'POST, OPTIONS'],
    ['GET', '/ws', 426, undefined],
    ['GET', '/', 404, undefined],
    ['GET', '/mcp/files/more', 404, undefined],
    ['GET', '/mcp/%', 404, undefined],
    ['POST', '/constructor', 404, undefined],
  ])('%s %s is %i', async (method, path, status, allow) => {
    await using d = await door();
    const answer = await d.ask(method, path);
    expect([answer.status, answer.headers.allow]).toEqual([status, allow]);
  });

  it('name the server or profile that is not there', async () => {
    await using d = await door();
    const { status, json } = await d.post(INITIALIZE, {}, '/mcp/nobody');
    expect([status, json.error]).toEqual([404, { code: -32602, message: 'there is no server "nobody" here' }]);
    expect((await d.post(INITIALIZE, {}, '/mcp/@none')).json.error.message).toBe('there is no profile "@none" here');
  });
});

describe('a POST is answered', () => {
  it('with a session when it initializes, or with why not', async () => {
    await using d = await door({ settings: { maxSessions: 1 } });
    expect((await d.post({ ...INITIALIZE, params: {} })).json.error).toMatchObject({ code: -32602 });
    const opened = await d.post(INITIALIZE);
    expect(opened.headers['mcp-session-id']).toMatch(/^[0-9a-f]{32}$/);
    expect(opened.json).toMatchObject({ id: 0, result: { protocolVersion: '2025-11-25' } });
    const refused = await d.post(INITIALIZE);
    expect([refused.status, refused.headers['retry-after'], refused.json.error.code]).toEqual([429, '5', -32012]);
  });

  it('with the very bytes of the answer, as JSON when it comes at once', async () => {
    await using d = await door();
    const mine = await d.enter();
    const body =
      '{"jsonrpc":"2.0",\n"id":"a\\u0062","method":"echo","params":{"n":12345678901234567890,"t":"ü\\u00fc"}}';
    const { status, headers, text } = await d.post(body, mine);
    expect(text).toBe('{"jsonrpc":"2.0","id":"a\\u0062","result":{"n":12345678901234567890,"t":"ü\\u00fc"}}\n');
    expect([status, headers['content-type'], headers['content-length']]).toEqual([200, 'application/json', '84']);
    const large = 'ü'.repeat(20_000);
    expect((await d.post(echo(2, { large }), mine)).json.result).toEqual({ large });
  });

  it('with 202 and nothing when it is a notification or a response', async () => {
    await using d = await door();
    const mine = await d.enter();
    for (const message of [{ method: 'notifications/initialized' }, { id: 4, result: {} }, { id: 4, error: {} }]) {
      const { status, text } = await d.post({ jsonrpc: '2.0', ...message }, { ...mine, accept: '*/*' });
      expect([status, text]).toEqual([202, '']);
    }
    expect(d.received.map(({ frame: { kind } }) => kind)).toEqual(['notification', 'result', 'error']);
  });

  it('each in its place, when they come down one connection without waiting', async () => {
    await using d = await door();
    const mine = await d.enter();
    const message = (id: number, end = '') => {
      const body = JSON.stringify(echo(id));
      const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
      return `${head}Mcp-Session-Id: ${mine['mcp-session-id']}\r\n${end}Content-Length: ${body.length}\r\n\r\n${body}`;
    };
    const said = await d.raw(message(1) + message(2) + message(3, 'Connection: close\r\n'));
    expect(said.match(/"id":\d/g)).toEqual(['"id":1', '"id":2', '"id":3']);
  });
});

describe('a batch of 2025-03-26', () => {
  it('is taken apart, and its answers come together', async () => {
    await using d = await door();
    const mine = await d.enter('2025-03-26');
    const batch = [
      echo(1),
      { jsonrpc: '2.0', method: 'notifications/x' },
      { jsonrpc: '2.0', id: 2, method: 3 },
      echo(3),
    ];
    const { status, json } = await d.post(batch, mine);
    expect(status).toBe(200);
    expect(json.map((each: any) => [each.id, each.error?.code])).toEqual([
      [1, undefined],
      [2, -32600],
      [3, undefined],
    ]);
    expect((await d.post([{ jsonrpc: '2.0', method: 'notifications/x' }], mine)).status).toBe(202);
    expect((await d.post([echo(1), INITIALIZE], mine)).json.error.message).toMatch(/initialize must not be part/);
  });

  it('is never a stream, also when one of them takes long: what comes before is dropped, a question refused', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    const mine = await d.enter('2025-03-26');
    const asked = d.post([echo(1), { jsonrpc: '2.0', id: 2, method: 'slow' }, { jsonrpc: '2.0', id: 3 }], mine);
    await eventually(() => expect(d.waiting.length).toBe(1));
    const line = d.waiting[0]!.line;
    line.tell(frame({ method: 'notifications/progress', params: {} }));
    line.tell(frame({ id: 'q1', method: 'elicitation/create', params: {} }));
    expect(d.received.at(-1)?.frame).toMatchObject({ kind: 'error', id: '"q1"' });
    line.answer(frame({ id: 2, result: {} }));
    line.answer(frame({ id: 2, result: { isTwice: true } }));
    const { status, headers, json } = await asked;
    expect([status, headers['content-type']]).toEqual([200, 'application/json']);
    expect(json.map((each: any) => [each.id, each.error?.code ?? each.result])).toEqual([
      [1, {}],
      [3, -32600],
      [2, {}],
    ]);
    expect(d.held.count).toBe(0);
  });
});

const withoutEmpty = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
