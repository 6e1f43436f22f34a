// Streams of the HTTP door: when an answer becomes one, what stands on it, and how a reader leaves and comes back.

import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { BOTH, type Door, door, listenTo } from '../support/http-door.ts';

const frame = (message: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const note = (n: number) => frame({ method: 'notifications/progress', params: { n } });
const answer = (id: number) => frame({ id, result: { done: true } });
const EVENTS = { accept: 'text/event-stream' };

/** A request that waits; the response comes when it does. */
function ask(d: Door, mine: Record<string, string>, id = 1, method = 'slow') {
  const headers = { 'content-type': 'application/json', accept: BOTH, ...mine };
  return listenTo(`${d.url}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id, method }) });
}
const listen = (d: Door, mine: Record<string, string>, last?: string) =>
  listenTo(`${d.url}/mcp`, { method: 'GET', headers: { ...EVENTS, ...mine, ...(last && { 'last-event-id': last }) } });
const messages = ({ events }: { events: Record<string, string>[] }) =>
  events.filter(({ data }) => data).map(({ data = '' }) => JSON.parse(data));
async function lineOf(d: Door, index = 0) {
  await eventually(() => d.waiting[index] !== undefined);
  return d.waiting[index]!.line;
}

describe('the answer to a request', () => {
  it('is a stream when something else comes first, in the order it came and ended by the answer', async () => {
    await using d = await door();
    const mine = await d.enter();
    const asked = ask(d, mine);
    const line = await lineOf(d);
    for (const n of [1, 2, 3]) line.tell(note(n));
    line.answer(answer(1)); // the stream is not committed yet
    const stream = await asked;
    await eventually(() => stream.isOver);
    expect(stream.headers).toMatchObject({
      ...{ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', ...mine },
      'cache-control': expect.stringContaining('no-cache'),
    });
    expect(stream.events[0]).toEqual({ id: expect.any(String), retry: expect.any(String), data: '' });
    expect(messages(stream).map(({ params, result }) => params?.n ?? result)).toEqual([1, 2, 3, { done: true }]);
    expect(new Set(stream.events.map(({ id }) => id)).size).toBe(5);
    await eventually(() => expect(d.held.count).toBe(0));
    expect(d.followers.size).toBe(0);
  });

  it('is a stream when it takes long, primed only for hosts that know what that is', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    for (const [index, [era, primed]] of [
      ['2025-11-25', true],
      ['2025-06-18', false],
    ].entries()) {
      const stream = await ask(d, await d.enter(String(era)));
      (await lineOf(d, index)).answer(answer(1));
      await eventually(() => stream.isOver);
      expect(stream.events[0]?.data === '', String(era)).toBe(primed);
      expect(messages(stream)).toEqual([{ jsonrpc: '2.0', id: 1, result: { done: true } }]);
    }
  });

  it('reaches the host also when it is given while the door closes', async () => {
    await using d = await door({ timing: { patienceMs: 1, drainMs: 5_000 } });
    const stream = await ask(d, await d.enter());
    const line = await lineOf(d);
    const closing = d.close();
    line.answer(answer(1));
    await closing;
    await eventually(() => stream.isOver);
    expect(messages(stream)).toEqual([{ jsonrpc: '2.0', id: 1, result: { done: true } }]);
  });

  it('is dropped when the host left before there was a stream, and cancels nothing', async () => {
    await using d = await door({ timing: { patienceMs: 60_000 } });
    const mine = await d.enter();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'slow' });
    const socket = connect(d.port, '127.0.0.1');
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
    socket.write(`${head}Mcp-Session-Id: ${mine['mcp-session-id']}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const line = await lineOf(d);
    expect(d.held.count).toBe(1);
    socket.destroy();
    await eventually(async () =>
      expect((await d.post({ jsonrpc: '2.0', id: 2, method: 'echo' }, mine)).status).toBe(200),
    );
    line.tell(note(1));
    line.answer(answer(1));
    expect(d.held.count).toBe(0);
    expect(d.received.map(({ frame: each }) => 'method' in each && each.method)).toEqual(['slow', 'echo']);
  });

  it('is for nobody when its host does not come back to its stream, and no sooner', async () => {
    await using d = await door({ timing: { patienceMs: 1, returnMs: 400 } });
    const mine = await d.enter();
    const first = await ask(d, mine);
    const line = await lineOf(d);
    await eventually(() => first.events.length === 1);
    expect(line.isAbsent?.()).toBe(false);
    first.leave();
    await eventually(() => line.isAbsent?.() === true);
    const again = await listen(d, mine, String(first.events[0]?.id));
    await eventually(() => d.callers.length > 0);
    expect([d.callers, line.isAbsent?.()]).toEqual([['back 1'], false]);
    again.leave();
    await eventually(() => d.callers.length > 1);
    expect(d.callers).toEqual(['back 1', 'gone 1']);
    const answered = await ask(d, mine, 2);
    (await lineOf(d, 1)).answer(answer(2));
    await eventually(() => answered.isOver);
    line.answer(answer(1));
  });

  it('is for nobody at once when its host has nothing to come back to', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    d.disk.isBroken = true;
    const live = await ask(d, await d.enter());
    await lineOf(d);
    live.leave();
    await eventually(() => expect(d.callers).toEqual(['gone 1']));
    const old = await d.enter('2025-03-26');
    const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'slow' }));
    const socket = connect(d.port, '127.0.0.1');
    const body = JSON.stringify(batch);
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
    socket.write(`${head}Mcp-Session-Id: ${old['mcp-session-id']}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const line = await lineOf(d, 2);
    expect(line.isMute).toBe(true);
    socket.destroy();
    await eventually(() => expect(d.callers).toEqual(['gone 1', 'gone 1', 'gone 2']));
  });

  it('reaches the host also when the disk takes nothing; only it cannot come back', async () => {
    await using d = await door();
    d.disk.isBroken = true;
    const asked = ask(d, await d.enter());
    const line = await lineOf(d);
    line.tell(note(1));
    line.answer(answer(1));
    const stream = await asked;
    await eventually(() => stream.isOver);
    expect(stream.events.map(({ id }) => id)).toEqual([undefined, undefined]);
    expect(messages(stream).map(({ params, result }) => params?.n ?? result)).toEqual([1, { done: true }]);
  });
});

describe('a reader that left', () => {
  it('comes back for the rest of its own stream, and hears nothing twice and nothing of another', async () => {
    await using d = await door();
    const mine = await d.enter();
    const [first, second] = [ask(d, mine, 1), ask(d, mine, 2)];
    const lines = [await lineOf(d, 0), await lineOf(d, 1)];
    const of = (id: number) => lines[d.waiting.findIndex(({ frame: each }) => 'id' in each && each.id === String(id))];
    for (const id of [1, 2]) of(id)?.tell(note(id * 10));
    const stream = await first;
    await eventually(() => expect(messages(stream).length).toBe(1));
    stream.leave();
    of(1)?.tell(note(11));
    of(2)?.tell(note(21));
    of(1)?.answer(answer(1));
    const last = stream.events.findLast(({ data }) => data)?.id ?? '';
    const back = await listen(d, mine, last);
    await eventually(() => back.isOver);
    expect(messages(back)).toEqual([JSON.parse(note(11).toString()), JSON.parse(answer(1).toString())]);
    const primer = stream.events[0]?.id ?? '';
    const again = await listen(d, mine, primer);
    await eventually(() => again.isOver);
    expect(messages(again).map(({ params, id }) => params?.n ?? id)).toEqual([10, 11, 1]);
    of(2)?.answer(answer(2));
    const other = await second;
    await eventually(() => other.isOver);
    expect(messages(other).map(({ params, id }) => params?.n ?? id)).toEqual([20, 21, 2]);
    const over = await listen(d, mine, again.events.at(-1)?.id);
    expect(over.status).toBe(204);
  });

  it('gets nothing by an id that is not its session’s', async () => {
    await using d = await door();
    const [mine, theirs] = [await d.enter(), await d.enter()];
    const asked = ask(d, theirs);
    (await lineOf(d)).tell(note(1));
    const stream = await asked;
    await eventually(() => expect(stream.events.length).toBeGreaterThan(0));
    const id = stream.events[0]?.id ?? '';
    for (const last of [id, 'nonsense', `standing-${theirs['mcp-session-id']}.0`]) {
      const refused = await d.ask('GET', '/mcp', { ...EVENTS, ...mine, 'last-event-id': last });
      expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('Last-Event-ID')]);
    }
  });
});

describe('the standing stream', () => {
  it('needs a session and a reader of events', async () => {
    await using d = await door();
    const mine = await d.enter();
    expect((await d.ask('GET', '/mcp', { ...mine, accept: 'application/json' })).status).toBe(406);
    expect((await d.ask('GET', '/mcp', EVENTS)).status).toBe(400);
    expect((await d.ask('GET', '/mcp', { ...EVENTS, 'mcp-session-id': 'x' })).status).toBe(404);
    expect((await d.ask('GET', '/mcp', { ...EVENTS, ...mine, 'mcp-protocol-version': '1' })).status).toBe(400);
  });

  it('brings what belongs to no request, and a later reader takes it over', async () => {
    await using d = await door();
    const mine = await d.enter();
    const stream = await listen(d, mine);
    d.tell(mine['mcp-session-id'], note(1));
    await eventually(() => expect(messages(stream).length).toBe(1));
    const later = await listen(d, mine, stream.events.at(-1)?.id);
    await eventually(() => stream.isOver);
    expect(stream.events.at(-1)).toEqual({ retry: expect.any(String) });
    d.tell(mine['mcp-session-id'], note(2));
    await eventually(() => expect(messages(later).map(({ params }) => params.n)).toEqual([2]));
    expect([d.followers.size, d.held.count]).toEqual([1, 1]);
  });

  it('is kept alive, and from time to time asked to come back', async () => {
    await using d = await door({ settings: { keepAliveMs: 10 }, timing: { rotateMs: 30 } });
    const stream = await listen(d, await d.enter());
    await eventually(() => stream.isOver);
    expect(stream.text).toMatch(/^(: still here\n\n)+retry: \d+\n\n$/);
    const old = await listen(d, await d.enter('2025-06-18'));
    await eventually(() => expect(old.text.length).toBeGreaterThan(200));
    expect(old.isOver).toBe(false); // a host of that era would not come back
  });

  it('ends also when the session ended elsewhere', async () => {
    await using d = await door();
    const mine = await d.enter('2025-06-18');
    const stream = await listen(d, mine);
    await d.sessions.find(mine['mcp-session-id'], '_')?.end();
    await eventually(() => stream.isOver);
  });

  it('ends with the session, but a call in flight is answered first on its own stream', async () => {
    await using d = await door({ timing: { patienceMs: 1 } });
    const mine = await d.enter();
    const [standing, asked] = [await listen(d, mine), await ask(d, mine)];
    expect((await d.ask('DELETE', '/mcp', mine)).status).toBe(200);
    await eventually(() => standing.isOver);
    (await lineOf(d)).answer(frame({ id: 1, error: { code: -32014, message: 'the session has ended' } }));
    await eventually(() => asked.isOver);
    expect(messages(asked)).toEqual([expect.objectContaining({ id: 1, error: expect.anything() })]);
  });

  it('ends with the session, which is then unknown', async () => {
    await using d = await door();
    const mine = await d.enter();
    const stream = await listen(d, mine);
    expect((await d.ask('DELETE', '/mcp', mine)).status).toBe(200);
    await eventually(() => stream.isOver);
    for (const method of ['GET', 'DELETE'])
      expect((await d.ask(method, '/mcp', { ...EVENTS, ...mine })).status).toBe(404);
    expect((await d.ask('DELETE', '/mcp')).status).toBe(400);
  });
});
