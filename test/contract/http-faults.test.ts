// What goes wrong inside while somebody is at the HTTP door: he hears that it did and no more, and everybody else is served.

import diagnostics from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { routeOf } from '../../src/doors/http/request.ts';
import { failureOf, TroupeError } from '../../src/protocol/failures.ts';
import { eventually } from '../support/eventually.ts';
import { BOTH, door } from '../support/http-door.ts';

const PING = { jsonrpc: '2.0', id: 1, method: 'echo' };
const SLOW = { jsonrpc: '2.0', id: 1, method: 'slow' };
const INITIALIZE = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
const FAULT = 'troupe could not handle the request; its log says why';
const NO_DATABASE = 'troupe cannot use its database now; its owner sees why in troupe status';
const frame = (message: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

describe('what was thrown', () => {
  it.each([
    [new TroupeError('busy', 'too many sessions; close one'), 'busy', 'too many sessions; close one', 0],
    [new TroupeError('invalid', 'see /mcp'), 'invalid', 'see /mcp', 0],
    [new TroupeError('unavailable', 'the bus is offline'), 'unavailable', 'the bus is offline', 0],
    [new TroupeError('unavailable', 'The database /home/me/troupe.db is corrupt.'), 'unavailable', NO_DATABASE, 0],
    [new TroupeError('internal', 'The database C:\\t.db refused a statement.'), 'internal', NO_DATABASE, 0],
    [new TroupeError('internal', 'The statement addEvent takes 4 values.'), 'internal', FAULT, 1],
    [new Error('connect ECONNREFUSED 10.0.0.1:4222'), 'internal', FAULT, 1],
    ['just a text', 'internal', FAULT, 1],
  ])('%s: what a caller is told of it, and what the log hears', (error, code, message, count) => {
    const faults: unknown[] = [];
    const failure = failureOf(error, (fault) => faults.push(fault), 'failed');
    expect(failure).toEqual({ code, delivery: 'failed', message });
    expect(faults).toEqual(count === 0 ? [] : [error]);
  });
});

describe('a database that cannot be read', () => {
  it('is told to whoever needs it, on every way in, and ends nothing', async () => {
    await using d = await door();
    const mine = await d.enter();
    d.store.isBroken = true;
    const events = { accept: 'text/event-stream', ...mine };
    const answers = [
      ...[await d.ask('DELETE', '/mcp', mine), await d.ask('GET', '/mcp', events)],
      ...[await d.post(PING, mine), await d.post(INITIALIZE, mine)],
    ];
    for (const { status, json } of answers)
      expect([status, json.error]).toMatchObject([503, { code: -32010, message: NO_DATABASE }]);
    d.store.isBroken = false;
    expect((await d.post(PING, mine)).json.result).toEqual({});
  });

  it('is told to whoever was to get a stream, and that nobody knows what becomes of the request', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    const mine = await d.enter();
    d.disk.isUnreadable = true;
    const { status, headers, json } = await d.post(SLOW, mine);
    expect([status, headers['retry-after']]).toEqual([503, undefined]);
    expect(json.error).toMatchObject({ message: NO_DATABASE, data: { troupe: { delivery: 'outcome unknown' } } });
    d.waiting[0]?.line.answer(frame({ id: 1, result: {} }));
    expect((await d.post(PING, mine)).json.result).toEqual({});
  });

  it('breaks the connection of a reader that could not keep up', async () => {
    await using d = await door();
    const mine = await d.enter();
    for (let n = 0; n < 400; n++)
      d.tell(mine['mcp-session-id'], frame({ method: 'n', params: { x: 'x'.repeat(50_000) } }));
    const socket = connect(d.port, '127.0.0.1');
    socket.on('error', () => {}); // it is cut off
    socket.write(
      `GET /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${mine['mcp-session-id']}\r\n\r\n`,
    );
    socket.pause();
    await eventually(() => expect(d.disk.read).toBeGreaterThan(20));
    await eventually(() => expect(d.followers.size).toBe(0));
    d.disk.isUnreadable = true;
    socket.resume();
    await eventually(() => expect(d.held.count).toBe(0));
    expect((await d.post(PING, mine)).json.result).toEqual({});
  });
});

describe('a session that throws', () => {
  it('costs its host one request, which is answered, or nothing', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    const mine = await d.enter();
    expect((await d.post({ jsonrpc: '2.0', method: 'throws' }, mine)).status).toBe(202);
    const { json } = await d.post({ ...PING, method: 'throws' }, mine);
    expect(json).toMatchObject({ id: 1, error: { message: FAULT, data: { troupe: { delivery: 'outcome unknown' } } } });
    expect((await d.post(PING, mine)).json.result).toEqual({});
    expect(d.held.count).toBe(0);
  });
});

describe('the listening socket', () => {
  it('survives an error of its own', async () => {
    await using d = await door();
    let server: Server | undefined;
    const look = (message: unknown) => {
      server = (message as { server: Server }).server;
    };
    diagnostics.subscribe('http.server.request.start', look);
    await d.ask('GET', '/elsewhere');
    diagnostics.unsubscribe('http.server.request.start', look);
    server?.emit('error', new Error('accept EMFILE'));
    expect((await d.ask('GET', '/elsewhere')).status).toBe(404);
  });

  it('answers what is no request with a bare status, and with nothing in the middle of an answer', async () => {
    await using d = await door({ standingOf: () => 'owner' });
    const mine = await d.enter();
    const bare = /^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n$/;
    expect(await d.raw('GARBAGE\r\n\r\n')).toMatch(bare);
    const head = `GET /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nAccept: ${BOTH}\r\n`;
    const said = await d.raw(`${head}Mcp-Session-Id: ${mine['mcp-session-id']}\r\n\r\nGARBAGE\r\n\r\n`);
    expect(said).not.toContain('400');
  });
});

it('a path is the same one whatever its query says', () => {
  for (let n = 0; n < 300; n++) expect(routeOf(`/mcp?n=${n}`)).toBe(routeOf('/mcp'));
  expect(routeOf('/messages?sessionId=a')).toEqual({ endpoint: 'messages', scope: '' });
});

it.each([
  ['/files/mcp', { endpoint: 'mcp', scope: 'files' }],
  ['/@small/mcp/', { endpoint: 'mcp', scope: '@small' }],
  ['/%40small/mcp?a=b', { endpoint: 'mcp', scope: '@small' }],
  ['/mcp/mcp', { endpoint: 'mcp', scope: 'mcp' }],
  ['/sse/mcp', { endpoint: 'sse', scope: 'mcp' }],
  ['/files/sse', undefined],
  ['/files/mcp/more', undefined],
  ['//mcp', undefined],
])('an address may end in /mcp: %s', (path, route) => {
  expect(routeOf(path)).toEqual(route);
});
