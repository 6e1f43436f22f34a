// The WebSocket door alone, with real sockets on both sides: who gets in, what a connection carries, and how it ends.

import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { door, INITIALIZE, request } from '../support/websocket-door.ts';

describe('who gets in', () => {
  it('chooses the subprotocol mcp among those offered, and asks for none', async () => {
    await using it = await door();
    expect((await it.client('', ['chat', 'mcp'])).ws.protocol).toBe('mcp');
    expect((await it.client('', [])).ws.protocol).toBe('');
  });

  it.each([
    ['400', '', ['chat']],
    ['404', 'nobody', ['mcp']],
  ])('answers %s to a client it cannot serve', async (status, scope, protocols) => {
    await using it = await door();
    await expect(it.client(scope, protocols)).rejects.toThrow(status);
  });

  it('refuses further connections of one who has too many, and of nobody else', async () => {
    await using it = await door({ maxSessions: 1 });
    const first = await it.client();
    await expect(it.client()).rejects.toThrow('503');
    await it.client('', ['mcp'], 'somebody else');
    first.ws.close();
    await eventually(() => it.client());
  });
});

describe('a session', () => {
  it('is opened by initialize, with its scope and principal, and echoes ids and params as they came', async () => {
    await using it = await door();
    const client = await it.client('files');
    client.send(INITIALIZE);
    expect((await client.answer(0)).result.protocolVersion).toBe('2025-11-25');
    const [session] = it.sessions.all;
    expect([session?.scope, session?.principal, session?.door, session?.holders()]).toEqual([
      'files',
      'me',
      'websocket',
      1,
    ]);
    client.ws.send(Buffer.from('{"jsonrpc":"2.0","id":"a","method":"echo","params":{"n":1.0,\n"s":"\\u00e9é"}}\n'));
    expect((await client.answer('a')).result).toEqual({ n: 1, s: 'éé' });
  });

  it('takes what was sent right behind initialize, in order', async () => {
    await using it = await door();
    const client = await it.client();
    client.send(INITIALIZE, { jsonrpc: '2.0', method: 'notifications/initialized' }, request(1, 'echo', { a: 1 }));
    expect((await client.answer(1)).result).toEqual({ a: 1 });
    expect(client.messages.map(({ id }) => id)).toEqual([0, 1]);
    expect(it.sessions.all[0]?.received.map(({ kind }) => kind)).toEqual(['notification', 'request']);
  });

  it('answers ping before initialize, and refuses everything else and a second initialize', async () => {
    await using it = await door();
    const client = await it.client();
    client.send(request(1, 'ping'), request(2, 'tools/list'), INITIALIZE);
    await client.answer(0);
    client.send({ ...INITIALIZE, id: 3 });
    expect((await client.answer(1)).result).toEqual({});
    expect((await client.answer(2)).error).toMatchObject({
      code: -32600,
      message: expect.stringMatching(/initialize/),
    });
    expect((await client.answer(3)).error.message).toMatch(/already/);
    expect(it.sessions.all).toHaveLength(1);
  });

  it('says why it was not opened, and keeps what is ours to itself', async () => {
    await using it = await door({ limit: 0 });
    const client = await it.client();
    client.send(INITIALIZE);
    expect((await client.answer(0)).error).toMatchObject({ code: -32012, data: { troupe: { code: 'busy' } } });
    client.send({ ...INITIALIZE, id: 1, params: { protocolVersion: 'broken' } });
    expect((await client.answer(1)).error).toMatchObject({
      code: -32603,
      message: 'troupe could not handle the request; its log says why',
    });
    expect(it.faults).toEqual(['websocket: disk on fire at /secret/place']);
  });

  it('ends after its connection, when what is in flight has run to its end, unheard', async () => {
    await using it = await door();
    const client = await it.client();
    client.send(INITIALIZE, request(1, 'wait'));
    const session = await it.sessions.waiter();
    client.ws.close(1000);
    await client.closed;
    await eventually(() => session.holders() === 0);
    expect(session.isEnded()).toBe(false);
    session.tell('notifications/tools/list_changed');
    session.waiting[0]?.line.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    expect(session.isEnded()).toBe(true);
    expect(client.messages.map(({ id }) => id)).toEqual([0]);
  });

  it('brings what belongs to no request to its own connection only', async () => {
    await using it = await door();
    const [one, other] = [await it.client(), await it.client()];
    one.send(INITIALIZE);
    await one.answer(0);
    other.send(INITIALIZE);
    await other.answer(0);
    it.sessions.all[0]?.tell('notifications/tools/list_changed');
    other.send(request(1, 'echo'));
    await other.answer(1);
    await eventually(() => one.messages.length === 2);
    expect(other.messages.map(({ method }) => method)).toEqual([undefined, undefined]);
  });
});

describe('malformed messages', () => {
  it('are answered with JSON-RPC errors, and the connection goes on', async () => {
    await using it = await door();
    const client = await it.client();
    client.send(INITIALIZE);
    await client.answer(0);
    client.ws.send('{"jsonrpc":"2.0",');
    client.ws.send(Buffer.from([0x7b, 0xff, 0x7d]));
    client.ws.send('{"jsonrpc":"1.0","id":7,"method":"echo"}');
    client.send(request(8, 'echo'));
    await client.answer(8);
    expect(client.messages.slice(1, 4).map(({ id, error }) => [id, error.code])).toEqual([
      [null, -32700],
      [null, -32700],
      [7, -32600],
    ]);
  });

  it('that are too large close the connection with 1009', async () => {
    await using it = await door({ maxBodyBytes: 1024 });
    const client = await it.client();
    client.ws.send('x'.repeat(2000));
    expect((await client.closed).code).toBe(1009);
  });
});

describe('batches', () => {
  it('are answered together where MCP has them', async () => {
    await using it = await door();
    const client = await it.client();
    client.send({ ...INITIALIZE, params: { protocolVersion: '2025-03-26' } });
    await client.answer(0);
    client.ws.send(
      JSON.stringify([request(1, 'echo', { a: 1 }), { jsonrpc: '2.0', method: 'x' }, {}, { ...INITIALIZE, id: 2 }]),
    );
    await eventually(() => client.messages.length === 2);
    const [, batch] = client.messages;
    expect(batch.map((each: any) => [each.id, each.result ?? each.error.code])).toEqual([
      [1, { a: 1 }],
      [null, -32600],
      [2, -32600],
    ]);
  });

  it('are refused where it has none', async () => {
    await using it = await door();
    const client = await it.client();
    client.send(INITIALIZE);
    await client.answer(0);
    client.ws.send(JSON.stringify([request(1, 'echo')]));
    expect((await client.answer(null)).error.message).toMatch(/2025-03-26/);
  });
});

describe('a peer that does not do its part', () => {
  it('is let go when it misses two pings', async () => {
    await using it = await door({ keepAliveMs: 30 });
    const client = await it.client();
    client.send(INITIALIZE);
    await client.answer(0);
    client.ws.pause(); // pings are no longer answered, nor is a close frame
    await eventually(() => it.sessions.all[0]?.isEnded());
  });

  it('is let go when it never initializes, with 1008', async () => {
    await using it = await door({ keepAliveMs: 20 });
    const client = await it.client();
    expect((await client.closed).code).toBe(1008);
  });

  it('keeps its connection while it answers pings', async () => {
    await using it = await door({ keepAliveMs: 20 });
    const client = await it.client();
    let pings = 0;
    client.ws.on('ping', () => pings++);
    client.send(INITIALIZE);
    await eventually(() => pings > 5);
    client.send(request(1, 'echo'));
    await client.answer(1);
  });
});

it('a handshake that is none does not harm the door', async () => {
  await using it = await door();
  const socket = connect(it.port, '127.0.0.1');
  socket.write('GET /ws/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  const answer = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  expect(answer).toMatch(/^HTTP\/1\.1 400/);
  socket.destroy();
  await it.client();
});
