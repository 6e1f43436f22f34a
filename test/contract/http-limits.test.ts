// What nobody may take too much of at the HTTP door: streams, memory, time; and how it closes.

import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { BOTH, type Door, door, listenTo } from '../support/http-door.ts';

const frame = (message: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const SLOW = { jsonrpc: '2.0', id: 1, method: 'slow' };
const listen = (d: Door, mine: object, more: object = {}) =>
  listenTo(`${d.url}/mcp`, { method: 'GET', headers: { accept: 'text/event-stream', ...mine, ...more } });
const ask = (d: Door, mine: object) =>
  listenTo(`${d.url}/mcp`, {
    ...{ method: 'POST', body: JSON.stringify(SLOW) },
    headers: { 'content-type': 'application/json', accept: BOTH, ...mine },
  });
const descriptors = () => readdirSync('/dev/fd').length;

describe('a session', () => {
  it('has only so many streams, and hears 429 beyond them', async () => {
    await using d = await door({ settings: { maxStreams: 2 }, timing: { patienceMs: 1 } });
    const mine = await d.enter();
    const [one] = [await listen(d, mine), await ask(d, mine)];
    for (const refused of [await d.post(SLOW, mine), await d.post({ ...SLOW, method: 'echo' }, mine)])
      expect([refused.status, refused.headers['retry-after'], refused.json.id]).toEqual([429, '5', 1]);
    expect((await listen(d, mine)).status).toBe(200); // it takes over the standing stream
    await eventually(() => one.isOver);
    expect((await d.post({ jsonrpc: '2.0', method: 'notifications/cancelled' }, mine)).status).toBe(202);
    expect((await d.post({ ...SLOW, method: 'echo' }, await d.enter())).status).toBe(200);
    expect(d.waiting.length).toBe(1);
  });
});

describe('a reader that does not read', () => {
  it('is sent no more than fits, costs no memory, and gets the rest when it reads again', async () => {
    await using d = await door();
    const mine = await d.enter();
    const count = 400;
    for (let n = 0; n < count; n++)
      d.tell(mine['mcp-session-id'], frame({ method: 'n', params: { n, x: 'x'.repeat(50_000) } }));
    const socket = connect(d.port, '127.0.0.1');
    socket.write(
      `GET /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${mine['mcp-session-id']}\r\n\r\n`,
    );
    socket.pause();
    await eventually(() => expect(d.disk.read).toBeGreaterThan(20));
    await eventually(() => expect(d.followers.size).toBe(0)); // it is followed no further
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.resume();
    await eventually(() => expect(text.match(/"n":\d+/g)?.length).toBe(count), 20_000);
    expect(text.match(/"n":\d+/g)?.map((each) => Number(each.slice(4)))).toEqual(
      Array.from({ length: count }, (_, n) => n),
    );
    socket.destroy();
    await eventually(() => expect(d.held.count).toBe(0));
  });

  it('is let go when it reads nothing between two signs of life', async () => {
    await using d = await door({ settings: { keepAliveMs: 30 } });
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
    await eventually(() => expect(d.held.count).toBe(0));
  });
});

describe('whoever takes for ever to say what he wants', () => {
  const timing = { headMs: 100, bodyMs: 200, checkMs: 20 };
  const opened = (d: Door, said: string) => {
    const socket = connect(d.port, '127.0.0.1', () => socket.write(said));
    const state = { text: '', isOver: false };
    socket.on('data', (chunk) => {
      state.text += chunk;
    });
    socket.on('error', () => {}); // a reset is an end too
    socket.on('close', () => {
      state.isOver = true;
    });
    return { socket, state };
  };

  it('is hung up on: with no word, with half a head, with half a body, with a trickle', async () => {
    await using d = await door({ timing });
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
    const slow = ['', 'POST /mc', head, `${head}Content-Length: 100\r\n\r\n{"jsonrpc"`].map((said) => opened(d, said));
    const trickle = opened(d, head);
    const timer = setInterval(() => trickle.socket.writable && trickle.socket.write('X-More: 1\r\n'), 20);
    await eventually(() => slow.every(({ state }) => state.isOver) && trickle.state.isOver);
    clearInterval(timer);
    expect(slow[3]?.state.text).toMatch(/^HTTP\/1.1 408/);
  });

  it('is not taken for a reader of a stream, which may stay as long as it likes', async () => {
    await using d = await door({ timing: { ...timing, patienceMs: 1 } });
    const mine = await d.enter();
    const [stream, asked] = [await listen(d, mine), await ask(d, mine)];
    const slow = opened(d, 'POST /mc');
    await eventually(() => slow.state.isOver);
    const again = opened(d, 'POST /mc');
    await eventually(() => again.state.isOver); // by now both have been open for longer than any request may take
    expect([stream.isOver, asked.isOver]).toEqual([false, false]);
    d.waiting[0]?.line.answer(frame({ id: 1, result: {} }));
    await eventually(() => asked.isOver);
    expect(asked.text).toContain('"result":{}');
  });

  it('may not say too much in the head', async () => {
    await using d = await door();
    expect(await d.raw(`GET /mcp HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431/);
  });
});

describe('the door', () => {
  it('closes when what was asked is answered, and asks readers to come back', async () => {
    const d = await door({ timing: { patienceMs: 60_000, drainMs: 60_000 } });
    const mine = await d.enter();
    const stream = await listen(d, mine);
    const asked = d.post(SLOW, mine);
    await eventually(() => expect(d.waiting.length).toBe(1));
    const idle: Socket = connect(d.port, '127.0.0.1');
    await once(idle, 'connect');
    const closing = d.close();
    await eventually(() => stream.isOver);
    expect(stream.text).toMatch(/retry: \d+\n\n$/);
    d.waiting[0]?.line.answer(frame({ id: 1, result: {} }));
    expect((await asked).json.result).toEqual({});
    await closing;
    await eventually(() => idle.readyState !== 'open');
    await expect(d.post(SLOW, mine)).rejects.toThrow();
    idle.destroy();
  });

  it('does not wait for ever for an answer, and then a stream is ended with the word to come back', async () => {
    const d = await door({ timing: { patienceMs: 1, drainMs: 50 } });
    const asked = await ask(d, await d.enter());
    await d.close();
    await eventually(() => asked.isOver);
    expect(asked.text).toMatch(/retry: \d+\n\n$/);
    expect(d.held.count).toBe(1); // the request itself goes on
  });

  it('has no descriptor, reader or hold left after a thousand connections', async () => {
    await using d = await door({ settings: { maxStreams: 1000 }, timing: { patienceMs: 1 } });
    const hosts = await Promise.all(Array.from({ length: 8 }, () => d.enter()));
    const before = descriptors();
    for (let n = 0; n < 125; n++)
      await Promise.all(
        hosts.map(async (mine, index) => {
          const stream = (n + index) % 2 ? await listen(d, mine) : await ask(d, mine);
          expect(stream.status).toBe(200);
          stream.leave();
        }),
      );
    for (const { line } of d.waiting) line.answer(frame({ id: 1, result: {} }));
    await eventually(() => expect(d.held.count).toBe(0));
    await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before + 5));
    expect(d.followers.size).toBe(0);
  }, 60_000);
});

describe('a door that has as many connections as it may', () => {
  /** A connection that says this much, and what comes of it. */
  const guest = (d: Door, said = '') => {
    const socket = connect(d.port, '127.0.0.1', () => void socket.write(said));
    const state = { text: '', isOver: false };
    socket.on('data', (chunk) => {
      state.text += chunk;
    });
    socket
      .on('error', () => {})
      .on('close', () => {
        state.isOver = true;
      });
    return { socket, state };
  };
  const OPTIONS = (d: Door) => `OPTIONS /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\n\r\n`;

  it('lets one go that nobody works on: first those that never asked, then those that rest', async () => {
    await using d = await door({ maxConnections: 4 });
    const rests = guest(d, OPTIONS(d));
    await eventually(() => rests.state.text.startsWith('HTTP/1.1 204'));
    const silent = [guest(d), guest(d), guest(d)];
    await eventually(() => expect(d.connections().used).toBe(4));
    const mine = await d.enter(); // which needs a connection
    await eventually(() => silent[0]?.state.isOver);
    expect([rests, ...silent].map(({ state }) => state.isOver)).toEqual([false, true, false, false]);
    const streams = [await listen(d, mine), await ask(d, mine), await ask(d, mine)];
    await eventually(() => expect(silent.every(({ state }) => state.isOver)).toBe(true));
    expect((await d.post({ ...SLOW, method: 'echo' }, await d.enter())).status).toBe(200);
    await eventually(() => rests.state.isOver);
    expect(streams.map(({ isOver }) => isOver)).toEqual([false, false, false]);
  });

  it('tells the newest why it must go when all are at work, and has room again when one of them leaves', async () => {
    await using d = await door({ maxConnections: 2, settings: { maxStreams: 8 }, timing: { patienceMs: 1 } });
    const [mine, other] = [await d.enter(), await d.enter()];
    const [stream, second] = [await listen(d, mine), await listen(d, other)];
    const refused = await d.post({ ...SLOW, method: 'echo' }, mine);
    expect([refused.status, refused.headers['retry-after'], refused.headers.connection]).toEqual([503, '5', 'close']);
    expect(refused.json.error.message).toMatch(/^troupe has as many connections as it can take \(ulimit -n\); close/);
    stream.leave();
    await eventually(() => expect(d.connections().used).toBe(1));
    expect((await d.post({ ...SLOW, method: 'echo' }, mine)).status).toBe(200);
    expect(second.isOver).toBe(false);
  });

  it('does not wait for a head that trickles in', async () => {
    await using d = await door({ maxConnections: 2 });
    const slow = [guest(d, 'POST /mc'), guest(d, 'POST /mc')];
    await eventually(() => expect(d.connections().used).toBe(2));
    await eventually(async () => expect((await d.enter())['mcp-session-id']).toBeDefined());
    expect(slow.some(({ state }) => state.isOver)).toBe(true);
  });

  it('lets heads go that trickle in before a newcomer who has not spoken yet', async () => {
    await using d = await door({ maxConnections: 2 });
    const slow = [guest(d, 'P'), guest(d, 'P')];
    await eventually(() => expect(d.connections().used).toBe(2));
    const since = performance.now();
    await eventually(() => expect(performance.now() - since).toBeGreaterThan(100));
    const first = guest(d);
    await eventually(() => expect(slow.filter(({ state }) => state.isOver).length).toBe(1));
    const second = guest(d);
    await eventually(() => expect(slow.filter(({ state }) => state.isOver).length).toBe(2));
    for (const { socket } of [first, second]) socket.write(OPTIONS(d));
    await eventually(() => [first, second].every(({ state }) => state.text.startsWith('HTTP/1.1 204')));
  });
});

describe('large requests', () => {
  it('that do not fit beside those on their way are refused, and taken when these are in', async () => {
    const maxBodyBytes = 1_000_000;
    await using d = await door({ settings: { maxBodyBytes }, maxArriving: 1_000_000 });
    const mine = await d.enter();
    const head = (length: number) =>
      `POST /mcp HTTP/1.1\r\nHost: localhost:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n` +
      `Mcp-Session-Id: ${mine['mcp-session-id']}\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;
    const large = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"${'x'.repeat(800_000)}"}}`;
    const slow = connect(d.port, '127.0.0.1', () => void slow.write(head(large.length) + large.slice(0, -1)));
    await eventually(() => expect(slow.bytesWritten).toBeGreaterThan(800_000));
    await eventually(async () => {
      const refused = await d.post(large, mine);
      expect([refused.status, refused.json.error.message]).toEqual([503, expect.stringMatching(/^too many large/)]);
    });
    expect((await d.post({ ...SLOW, method: 'echo' }, mine)).status).toBe(200);
    let answer = '';
    slow.on('data', (chunk) => {
      answer += chunk;
    });
    slow.write('}');
    await eventually(() => expect(answer).toMatch(/^HTTP\/1.1 200/));
    expect((await d.post(large, mine)).status).toBe(200);
    slow.destroy();
  });
});
