// What leaves the WebSocket door: frames of every size, much at once, to peers that read late or not at all.

import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { LittleSession } from '../support/little-sessions.ts';
import { door, INITIALIZE, request } from '../support/websocket-door.ts';

const MIB = 1024 ** 2;
const answerOf = (id: string, bytes: number) =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"text":"${'x'.repeat(bytes)}"}}\n`);

async function opened(it: Awaited<ReturnType<typeof door>>) {
  const client = await it.client();
  client.send(INITIALIZE);
  await client.answer(0);
  return { client, session: it.sessions.all.at(-1) as LittleSession };
}

describe('frames', () => {
  it.each([1, 125, 126, 65_535, 65_536, 200_000])('of %i bytes come whole, alone and among others', async (bytes) => {
    await using it = await door();
    const { client } = await opened(it);
    const empty = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { text: '' } }).length;
    const text = 'y'.repeat(Math.max(0, bytes - empty));
    client.send(request(1, 'echo', { text }), request(2, 'echo', { text: 'small' }));
    expect((await client.answer(2)).result.text).toBe('small');
    expect((await client.answer(1)).result.text).toBe(text);
  });

  it('of a thousand requests come in the order in which they were answered', async () => {
    await using it = await door();
    const { client } = await opened(it);
    const ids = Array.from({ length: 1_000 }, (_, index) => index + 1);
    client.send(...ids.map((id) => request(id, 'echo', { id })));
    await client.answer(1_000);
    expect(client.messages.slice(1).map(({ id }) => id)).toEqual(ids);
  });
});

describe('a peer that does not read', () => {
  it('is not read from until it does, and then loses nothing', async () => {
    await using it = await door();
    const { client, session } = await opened(it);
    client.send(request(1, 'wait'));
    await eventually(() => session.waiting.length === 1);
    client.ws.pause();
    for (let part = 0; part < 20; part++) session.waiting[0]?.line.tell(answerOf(`"part"`, MIB));
    await new Promise(setImmediate); // they leave at the end of the turn
    client.send(request(2, 'echo'));
    const other = await opened(it); // by the time it was served, the first one would have been too
    other.client.send(request(1, 'echo'));
    await other.client.answer(1);
    session.waiting[0]?.line.answer(answerOf('1', 10));
    expect(session.received.map((frame) => 'id' in frame && frame.id)).not.toContain('2');
    client.ws.resume();
    await client.answer(2);
    expect(client.messages.filter(({ id }) => id === 'part')).toHaveLength(20);
    expect(session.isEnded()).toBe(false);
  });

  it('is given up with 1013 when too much is unread, and its session ends', async () => {
    await using it = await door();
    const { client, session } = await opened(it);
    client.send(request(1, 'wait'));
    await eventually(() => session.waiting.length === 1);
    client.ws.pause();
    for (let part = 0; part < 70; part++) session.waiting[0]?.line.tell(answerOf(`"part"`, MIB));
    await eventually(() => session.holders() === 0);
    session.waiting[0]?.line.answer(answerOf('1', 10));
    expect(session.isEnded()).toBe(true);
    client.ws.resume();
    expect((await client.closed).code).toBe(1013);
  });
});

describe('a session that throws', () => {
  it('costs its host that one message: a request is answered, the rest is only logged', async () => {
    await using it = await door();
    const { client } = await opened(it);
    client.send({ jsonrpc: '2.0', method: 'throws' }, request(1, 'throws'), request(2, 'echo'));
    const { error } = await client.answer(1);
    expect(error).toMatchObject({ code: -32603, data: { troupe: { delivery: 'outcome unknown' } } });
    expect(error.message).toBe('troupe could not handle the request; its log says why');
    expect((await client.answer(2)).result).toEqual({});
    expect(it.faults).toEqual(Array.from({ length: 2 }, () => 'websocket: a bug at /secret/place'));
  });
});

describe('a session that was ended elsewhere', () => {
  it('takes its connection with it: 4404, after the last answer and to nobody else', async () => {
    await using it = await door();
    const [{ client, session }, other] = [await opened(it), await opened(it)];
    client.send(request(1, 'wait'));
    await eventually(() => session.waiting.length === 1);
    await session.end();
    client.send(request(2, 'echo'));
    expect((await client.answer(2)).error).toMatchObject({ code: -32010, data: { troupe: { delivery: 'not sent' } } });
    expect(session.received).toHaveLength(1);
    session.waiting[0]?.line.answer(answerOf('1', 10));
    expect(await client.closed).toEqual({ code: 4404, reason: 'the session has ended' });
    expect((await client.answer(1)).result.text).toBe('xxxxxxxxxx');
    await eventually(() => session.holders() === 0);
    other.client.send(request(1, 'echo'));
    await other.client.answer(1);
  });
});

describe('a door that closes', () => {
  it('answers what is in flight, refuses what comes, and says 1001', async () => {
    await using it = await door();
    const { client, session } = await opened(it);
    client.send(request(1, 'wait'));
    await eventually(() => session.waiting.length === 1);
    const closed = it.websocket.close();
    client.send(request(2, 'echo'));
    expect((await client.answer(2)).error).toMatchObject({ code: -32010, data: { troupe: { delivery: 'not sent' } } });
    session.waiting[0]?.line.answer(answerOf('1', 10));
    expect((await client.closed).code).toBe(1001);
    expect((await client.answer(1)).result.text).toBe('xxxxxxxxxx');
    await closed;
    expect(session.isEnded()).toBe(true);
  });
});

it('connections that come and go leave no session behind', async () => {
  await using it = await door();
  for (let round = 0; round < 20; round++) {
    const clients = await Promise.all(Array.from({ length: 10 }, () => it.client()));
    for (const client of clients) client.send(INITIALIZE);
    await Promise.all(clients.map((client) => client.answer(0)));
    for (const { ws } of clients) round % 2 ? ws.close() : ws.terminate();
    await eventually(() => it.sessions.all.every((session) => session.isEnded() && session.holders() === 0));
  }
  expect(it.sessions.all).toHaveLength(200);
});
