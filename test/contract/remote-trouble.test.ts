// What goes wrong on the way to a remote server, or at it: each call is answered once, with as much as can be known of its
// fate; credentials go nowhere else; and one bad answer spoils no other call.

import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Asked, bodyOf, json, listen, remoteCast, said, scripted } from '../support/remote.ts';

const error = (id: unknown, message: string) => ({ jsonrpc: '2.0', id, error: { code: -32050, message, data: [1.5] } });

it.each<[string, (asked: Asked) => unknown, string]>([
  ['HTTP 500', ({ response }) => response.writeHead(500).end('<h1>oops</h1>'), 'lost, outcome unknown'],
  ['HTTP 403', ({ response }) => response.writeHead(403).end(), 'rejected, failed'],
  ['HTTP 413', ({ response }) => response.writeHead(413).end(), 'tooLarge, failed'],
  ['HTTP 429', ({ response }) => response.writeHead(429, { 'retry-after': '5' }).end(), 'busy, failed'],
  ['an error with HTTP 400', ({ response, message }) => json(response, 400, error(message.id, 'mine')), 'error mine'],
  ['an error with HTTP 500', ({ response }) => json(response, 500, error(null, 'to nobody')), 'error to nobody'],
  ['HTTP 202', ({ response }) => response.writeHead(202).end(), 'rejected, outcome unknown'],
  [
    'a page',
    ({ response }) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    'rejected, outcome unknown',
  ],
  [
    'garbage',
    ({ response }) => response.writeHead(200, { 'content-type': 'application/json' }).end('{'),
    'rejected, outcome unknown',
  ],
  [
    'an answer to another',
    ({ response }) => json(response, 200, { jsonrpc: '2.0', id: 999, result: {} }),
    'rejected, outcome unknown',
  ],
  ['zipped bytes', ({ response }) => json(response, 200, {}, { 'content-encoding': 'gzip' }), 'rejected, failed'],
  [
    'half a body',
    ({ response, request }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' }).write('{"jsonrpc"');
      setTimeout(() => request.socket.destroy(), 20);
    },
    'lost, outcome unknown',
  ],
  ['a closed connection', ({ request }) => request.socket.destroy(), 'lost, outcome unknown'],
  ['nothing', () => {}, 'timeout, outcome unknown'],
])('a call answered with %s', async (_, call, expected) => {
  const script = scripted({
    call: (asked) =>
      asked.message.params.arguments.isWell
        ? json(asked.response, 200, { jsonrpc: '2.0', id: asked.message.id, result: {} })
        : call(asked),
  });
  await using web = await listen(script);
  await using far = await remoteCast(`${web.url}?key=s3cret`);
  await far.until('ready');
  const outcome = await far.call('do', {}, { timeoutMs: 700 });
  expect(said(outcome)).toBe(expected);
  expect(JSON.stringify(outcome)).not.toContain('s3cret');
  expect(await far.call('do', { isWell: true })).toMatchObject({ ok: true });
  expect(far.member.state).toBe('ready');
  expect(script.of('tools/call')).toHaveLength(2);
});

it.each(['text/event-stream', 'application/json'])(
  'ends only the call whose answer is too long, as %s',
  async (type) => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let poured = 0;
    const script = scripted({
      call({ response, message }) {
        if (message.params.arguments.isWell) return json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} });
        response.writeHead(200, { 'content-type': type }).write('data: "');
        const pour = (): void => {
          if (poured++ < 100 && !response.destroyed) response.write(chunk, () => setImmediate(pour));
        };
        pour();
      },
    });
    await using web = await listen(script);
    await using far = await remoteCast(web.url, { settings: { maxFrameBytes: '2MB' } });
    await far.until('ready');
    expect(said(await far.call('do'))).toBe('tooLarge, outcome unknown');
    expect(poured).toBeLessThan(100);
    expect(await far.call('do', { isWell: true })).toMatchObject({ ok: true });
  },
);

it('follows a redirect within the origin, with method and body', async () => {
  const script = scripted({
    first({ request, response }) {
      if (request.url !== '/mcp') return false;
      response.writeHead(request.method === 'GET' ? 302 : 307, { location: '/mcp/' }).end();
      return true;
    },
    call: ({ message, response }) =>
      json(response, 200, { jsonrpc: '2.0', id: message.id, result: { got: message.params } }),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(await far.call('do', { a: 1 })).toMatchObject({ ok: true });
});

it.each([
  ['another origin', 308, (port: number) => `http://127.0.0.1:${port}/mcp`, 'another origin'],
  ['a GET', 303, () => '/other', 'HTTP 303'],
  ['itself for ever', 307, () => '/mcp', 'in circles'],
])('refuses a redirect to %s and takes nothing there', async (_, status, location, why) => {
  const strangers: unknown[] = [];
  await using stranger = await listen(async (request, response) => {
    strangers.push([request.headers, await bodyOf(request)]);
    response.end();
  });
  await using web = await listen((_request, response) =>
    response.writeHead(status, { location: location(stranger.port) }).end(),
  );
  const headers = { Authorization: 'Bearer s3cret' };
  await using far = await remoteCast(web.url, { headers, settings: { restart: { intensity: 1, backoffMs: [10] } } });
  await far.until('failed');
  expect(far.member.why).toContain(why);
  expect(strangers).toEqual([]);
});

it('says that nobody is there, comes back when somebody is, and is reopened when they leave', async () => {
  const script = scripted({
    call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  const first = await listen(script);
  const { port, url } = first;
  await first[Symbol.asyncDispose]();
  await using far = await remoteCast(url, { settings: { restart: { intensity: 1000, backoffMs: [50] } } });
  await eventually(() => expect(far.member.why).toContain('the connection was refused (ECONNREFUSED)'));
  expect(far.member.why).toContain(`127.0.0.1:${port}`);
  expect(far.member.why).not.toContain('/mcp');
  const second = await listen(script, port);
  await far.until('ready');
  await second[Symbol.asyncDispose]();
  // What was sent into a connection that had just ended is lost; what finds none is not sent.
  const outcome = await far.call('do');
  expect(['unavailable, not sent', 'lost, outcome unknown']).toContain(said(outcome));
  await eventually(() => far.member.restarts > 0 && far.member.state !== 'ready');
  await using _third = await listen(script, port);
  await far.until('ready');
  expect(await far.call('do')).toMatchObject({ ok: true });
});

it('is tried again at once when a call wants it, however long it would have waited', async () => {
  const script = scripted({
    call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  const first = await listen(script);
  const { port, url } = first;
  await first[Symbol.asyncDispose]();
  await using far = await remoteCast(url, { settings: { trust: true, restart: { backoffMs: [600_000] } } });
  await far.until('waiting');
  await using _second = await listen(script, port);
  expect(await far.call('do')).toMatchObject({ ok: true });
  expect(far.member.restarts).toBe(1);
});

it('fails, and says why, when the server speaks no version of ours', async () => {
  const message = 'Unsupported protocol version';
  const data = { supported: ['2026-07-28'], requested: '2025-11-25' };
  await using web = await listen(async (request, response) => {
    const { id } = (await bodyOf(request)) ?? {};
    json(response, request.method === 'POST' ? 400 : 405, {
      jsonrpc: '2.0',
      id,
      error: { code: -32022, message, data },
    });
  });
  await using far = await remoteCast(web.url);
  await far.until('failed');
  expect(far.member.why).toContain('2026-07-28');
  expect(said(await far.call('do'))).toBe('unavailable, not sent');
  expect(far.member.restarts).toBe(0);
});

it.each(['ftp://127.0.0.1/mcp', 'http://user:s3cret@127.0.0.1/mcp', 'no url', 'ws://127.0.0.1/mcp'])(
  'does not open %s',
  async (url) => {
    await using far = await remoteCast(url);
    await far.until('failed');
    expect(far.member.why).toMatch(/^its url/);
    expect(far.log.join('')).not.toContain('s3cret');
  },
);

it('asks who we are once more when it is challenged, and leaves the rest to a person', async () => {
  let token = 'old';
  const challenges: number[] = [];
  const script = scripted({
    first({ request, response }) {
      if (request.headers.authorization === 'Bearer new') return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      return true;
    },
    call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  let isMended = true;
  const authorizerOf = () => ({
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    challenged: async ({ status }: { status: number }) => {
      challenges.push(status);
      if (isMended) token = 'new';
      return isMended;
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url, {}, { authorizerOf });
  await far.until('ready');
  expect(challenges).toEqual([401]);
  await eventually(() => far.catalog.get('far', 'templates').isFresh);
  [token, isMended] = ['old', false];
  expect(said(await far.call('do'))).toBe('unauthorized, failed');
  await eventually(() => expect(far.member.state).not.toBe('ready'));
  expect(far.member.why).toContain('it answered HTTP 401');
});

it('takes no more calls at once than it has connections for, and loses none', async () => {
  const taken: Asked[] = [];
  const give = ({ message, response }: Asked) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} });
  let isHolding = true;
  const script = scripted({ call: (asked) => (isHolding ? taken.push(asked) : give(asked)) });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await eventually(() => far.catalog.get('far', 'templates').isFresh);
  const outcomes = Promise.all(Array.from({ length: 700 }, () => far.call('do')));
  await eventually(() => expect(taken).toHaveLength(256), 20_000);
  expect(far.member.lane.queued).toBe(700 - 256);
  isHolding = false;
  for (const asked of taken) give(asked);
  expect((await outcomes).filter(({ ok }) => ok)).toHaveLength(700);
});
