// The HTTP door before anybody is let in: names, pages, tokens, framing, handshakes, slow clients, other users.

import { setTimeout as pause } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { expect } from 'vitest';
import { askControl } from '../support/control.ts';
import { asStranger } from '../support/stranger.ts';
import { ALICE, anywhere, surface, type Target } from './kit.ts';
import { INITIALIZE, openSocket, sendRaw, statusesOf } from './wire.ts';

const BODY = JSON.stringify(INITIALIZE);
const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

surface('http-gate', {
  'foreign hosts and pages': anywhere(async ({ target, attempt }) => {
    const agent = new Agent({ connections: 8 });
    const tries = matrix(target).map((row) => async () => {
      const { method, host, origin, site, token, statuses } = row;
      const headers: Record<string, string> = {
        host,
        ...(origin !== undefined && { origin }),
        ...(site && { 'sec-fetch-site': site }),
        ...(token && { authorization: token }),
      };
      await attempt(`${method} ${JSON.stringify(headers)}`, async () => {
        const path = `${target.http}/elsewhere`;
        const { statusCode, headers: said, body } = await request(path, { dispatcher: agent, method, headers });
        await body.dump();
        expect(statuses).toContain(statusCode);
        expect(said['access-control-allow-origin']).toBeUndefined();
      });
    });
    await inTurns(tries, 8);
    await agent.close();
  }),

  'guessed tokens': anywhere(async ({ target, attempt }) => {
    const tokens = [...guesses(target.token), ...guesses(ALICE)];
    for (const authorization of tokens)
      for (const path of ['/mcp', '/sse', '/ws', '/elsewhere'])
        await attempt(`${path} ${authorization.slice(0, 40)}`, async () => {
          const { statusCode, body } = await request(`${target.http}${path}`, { headers: { authorization } });
          const text = await body.text();
          expect([statusCode, text.includes(target.token)]).toEqual([401, false]);
        });
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'])
      await attempt(name, async () => {
        const headers = { ...JSON_HEADERS, [name]: 'for=127.0.0.1' };
        const { statusCode, body } = await request(`${target.http}/mcp`, { method: 'POST', headers, body: BODY });
        await body.dump();
        expect(statusCode).toBe(401);
      });
    for (const path of [`/elsewhere?token=${target.token}`, `/elsewhere?access_token=${target.token}`])
      await attempt(path, async () => {
        const headers = { authorization: 'Bearer wrong-wrong-wrong-wrong' };
        const { statusCode, body } = await request(`${target.http}${path}`, { headers });
        await body.dump();
        expect(statusCode).toBe(401);
      });
  }),

  'broken framing': anywhere(async ({ target, attempt }) => {
    const { sessions } = await askControl<{ sessions: number }>(target.control, 'status');
    for (const [what, bytes, ...expected] of framings(target))
      await attempt(what, async () => {
        const statuses = statusesOf(await sendRaw(target.port, bytes));
        expect(expected.map(String)).toContain(statuses.join(' '));
      });
    await attempt('none of them began a session', async () => {
      const after = await askControl<{ sessions: number }>(target.control, 'status');
      expect(after.sessions).toBe(sessions);
    });
  }),

  'foreign WebSockets': anywhere(async ({ target, attempt }) => {
    for (const [what, bytes, status] of handshakes(target))
      await attempt(what, async () => {
        const said = await sendRaw(target.port, bytes);
        expect(statusesOf(said)).toEqual([status]);
      });
  }),

  slowloris: anywhere(async ({ target, attempt }) => {
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\n`;
    const body = `${head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const sockets = await Promise.all(Array.from({ length: 500 }, () => openSocket(target.port)));
    const open = new Set(sockets);
    const dripping = sockets.map(async (socket, index) => {
      socket.on('error', () => {}).on('close', () => open.delete(socket));
      socket.resume().write(index % 2 ? head : body);
      for (let drop = 0; drop < 30 && !socket.destroyed; drop++) {
        await pause(500);
        if (!socket.destroyed) socket.write(index % 2 ? `X-${drop}: 1\r\n` : ' ');
      }
    });
    await attempt('who drips headers is cut off, and a neighbour is served meanwhile', async () => {
      await Promise.all(dripping);
      expect([...open].filter((socket) => sockets.indexOf(socket) % 2 === 1)).toHaveLength(0);
    });
    for (const socket of sockets) socket.destroy();
  }),

  'another user of the machine': anywhere(async ({ target, attempt, leaveOut }) => {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) return leaveOut('only root can be another user');
    const head = `Host: 127.0.0.1:${target.port}\r\nConnection: close\r\n`;
    const json = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n';
    const posts = ['/mcp', '/mcp/echo', '/echo/mcp'].map(
      (path) => `POST ${path} HTTP/1.1\r\n${head}${json}Content-Length: ${BODY.length}\r\n\r\n${BODY}`,
    );
    const upgrade = handshakes(target)[0]?.[1].replace(/Origin: .*\r\n/, '') ?? '';
    const letters = [...posts, `GET /sse HTTP/1.1\r\n${head}\r\n`, `DELETE /mcp HTTP/1.1\r\n${head}\r\n`, upgrade];
    const said = await asStranger(...letters.map((bytes) => ({ port: target.port, bytes })));
    for (const [index, answer] of said.entries())
      await attempt(letters[index]?.split('\r\n')[0] ?? '', () => expect(answer).toMatch(/^HTTP\/1\.1 401 /));
    // One that leaves at once, so that its port may be the owner's when it is looked at.
    const leaving = Array.from({ length: 50 }, () => ({ port: target.port, bytes: posts[0] as string, leaves: true }));
    const { sessions } = await askControl<{ sessions: number }>(target.control, 'status');
    await attempt('fifty that leave at once', async () => {
      await asStranger(...leaving);
      expect((await askControl<{ sessions: number }>(target.control, 'status')).sessions).toBe(sessions);
    });
    await attempt('the control socket', async () => {
      const { execa } = await import('execa');
      const script = `require('node:net').connect(process.argv[1]).on('connect', () => process.exit(0)).on('error', () => process.exit(9))`;
      const options = { cwd: '/', uid: 65_534, gid: 65_534, reject: false } as const;
      expect((await execa(process.execPath, ['-e', script, target.control], options)).exitCode).toBe(9);
    });
  }),
});

// ── Names, pages and tokens ──────────────────────────────────────────────────

type Row = {
  readonly method: Dispatcher.HttpMethod;
  readonly host: string;
  readonly origin: string | undefined;
  readonly site: string;
  readonly token: string;
  readonly statuses: number[];
};

function matrix({ port, token }: Target): Row[] {
  const ours = [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`];
  const foreign = ['evil.example', `evil.example:${port}`, `127.0.0.1:${port + 1}`, '127.0.0.1', `localhost.:${port}`];
  const disguised = [`127.0.0.1.evil.example:${port}`, `127.1:${port}`, `2130706433:${port}`, `0.0.0.0:${port}`];
  const origins = [
    undefined,
    `http://127.0.0.1:${port}`,
    'null',
    '',
    'http://evil.example',
    `https://127.0.0.1:${port}`,
  ];
  const nearly = [`http://127.0.0.1:${port}.evil.example`, `http://localhost:${port + 1}`, 'file://'];
  const rows: Row[] = [];
  for (const host of [...ours, ...foreign, ...disguised])
    for (const origin of [...origins, ...nearly])
      for (const site of ['', 'none', 'same-origin', 'same-site', 'cross-site'])
        for (const shown of ['', `Bearer ${token}`, 'Bearer wrong-wrong-wrong-wrong']) {
          const isOurs = ours.includes(host) && (origin === undefined || origin === origins[1]);
          const isElsewhere = origin === undefined && site.endsWith('-site');
          const admitted = shown === '' ? [404, 401] : shown.includes('wrong') ? [401] : [404];
          const statuses = isOurs && !isElsewhere ? admitted : [403];
          rows.push({ method: 'GET', host, origin, site, token: shown, statuses });
        }
  return rows;
}

const guesses = (token: string): string[] => [
  ...['Bearer', 'Bearer ', 'Bearer null', 'Bearer undefined', 'Basic Og==', token, `Basic ${token}`, `Token ${token}`],
  ...[`Bearer ${token}x`, `Bearer x${token}`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token} ${token}`],
  ...[`Bearer ${token.toUpperCase()}x`, `Bearer "${token}"`, `Bearer ${token},x`, `Bearer\t${token}`],
  ...[`Bearer ${'a'.repeat(8_000)}`, `Bearer ${token}%00`],
];

async function inTurns(tries: (() => Promise<void>)[], atOnce: number): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < tries.length) await tries[next++]?.();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

// ── Framing ──────────────────────────────────────────────────────────────────

/** What is sent, and the statuses that may come back: one answer, unless more were asked for. */
type Framing = readonly [what: string, bytes: string | Buffer, ...expected: (number | string)[]];

function framings({ port }: Target): Framing[] {
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const json = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n';
  const post = (more: string, body = '') => `POST /mcp HTTP/1.1\r\n${host}${json}${more}\r\n${body}`;
  const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\n${host}${more}\r\n`;
  // It would be a second answer.
  const smuggled = `POST /mcp HTTP/1.1\r\n${host}${json}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const length = `Content-Length: ${BODY.length}\r\n`;
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  return [
    ['CL.TE', post(`Content-Length: ${smuggled.length + 5}\r\n${chunked}`, `0\r\n\r\n${smuggled}`), 400],
    ['TE.CL', post(`${chunked}Content-Length: 4\r\n`, `${chunk(smuggled)}0\r\n\r\n`), 400],
    ['TE.TE', post(`${chunked}Transfer-Encoding: identity\r\n`, `0\r\n\r\n${smuggled}`), 400],
    ['an unknown coding', post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`), 400],
    ['chunked first', post('Transfer-Encoding: chunked, identity\r\n', `0\r\n\r\n${smuggled}`), 400],
    ['a blank before the colon', post('Transfer-Encoding : chunked\r\n', `0\r\n\r\n${smuggled}`), 400],
    ['a vertical tab', post('Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${smuggled}`), 400],
    ['a folded coding', post('Transfer-Encoding:\r\n chunked\r\n', `0\r\n\r\n${smuggled}`), 400],
    ['two lengths', post(`${length}Content-Length: 4\r\n`, BODY), 400],
    ['one length twice', post(`${length}${length}`, BODY), 400],
    ['a list of lengths', post('Content-Length: 4, 4\r\n', 'abcd'), 400],
    ['a signed length', post('Content-Length: +4\r\n', 'abcd'), 400],
    ['a negative length', post('Content-Length: -1\r\n', smuggled), 400],
    ['a hexadecimal length', post('Content-Length: 0x4\r\n', 'abcd'), 400],
    ['a length of two words', post('Content-Length: 4 4\r\n', 'abcd'), 400],
    ['a length beyond all numbers', post('Content-Length: 99999999999999999999\r\n', 'abcd'), 400],
    ['an empty length', post('Content-Length:\r\n', smuggled), 400],
    ['a huge length', post('Content-Length: 999999999999\r\n', 'abcd'), 413],
    ['a folded header', get('/elsewhere', 'X-A: 1\r\n 2\r\n'), 400],
    ['bare line feeds', get('/elsewhere').replaceAll('\r\n', '\n'), 400],
    ['bare carriage returns', get('/elsewhere').replaceAll('\r\n', '\r'), 400],
    ['a line feed that ends the head', `GET /elsewhere HTTP/1.1\r\n${host}\n${smuggled}`, 400],
    ['a huge chunk', post(chunked, `FFFFFFFFFFFFFFFFF\r\n${BODY}`), 400],
    ['a negative chunk', post(chunked, `-1\r\n${BODY}`), 400],
    ['a chunk size with a prefix', post(chunked, `0x4\r\nabcd\r\n0\r\n\r\n`), 400],
    ['a chunk without its end', post(chunked, `4\r\nabcdef\r\n0\r\n\r\n`), 400],
    ['chunks with line feeds', post(chunked, `4\nabcd\n0\n\n${smuggled}`), 400],
    ['a long chunk extension', post(chunked, `4;${'x'.repeat(100_000)}\r\nabcd\r\n0\r\n\r\n`), 413, 400],
    ['a line feed in a chunk extension', post(chunked, `4;a\nb\r\nabcd\r\n0\r\n\r\n${smuggled}`), 400],
    ['a Host in a trailer', post(chunked, `${chunk('nonsense')}0\r\nHost: evil.example\r\n\r\n`), 400],
    ['10,000 headers', get('/elsewhere', 'A: 1\r\n'.repeat(10_000)), 431],
    ['a header of a megabyte', get('/elsewhere', `A: ${'x'.repeat(2 ** 20)}\r\n`), 431],
    ['a target of a megabyte', get(`/${'x'.repeat(2 ** 20)}`), 431],
    ['another host’s absolute target', get('http://evil.example/mcp'), 404, 403, 400],
    ['CONNECT', `CONNECT evil.example:443 HTTP/1.1\r\n${host}\r\n`, '', 400, 405],
    ['NUL in the target', get('/mcp\0/../elsewhere'), 400],
    ['NUL in a header', get('/elsewhere', 'X: a\0b\r\n'), 400],
    ['NUL in a name', get('/elsewhere', 'X\0Y: a\r\n'), 400],
    ['no name', get('/elsewhere', ': a\r\n'), 400],
    ['no colon', get('/elsewhere', 'nothing\r\n'), 400],
    ['a blank before the first header', `GET /elsewhere HTTP/1.1\r\n ${host}\r\n`, 400],
    ['HTTP/0.9', 'GET /mcp\r\n\r\n', 400, 403, ''],
    ['HTTP/9.9', `GET /mcp HTTP/9.9\r\n${host}\r\n`, 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, ''],
    ['TLS', Buffer.from('160301010001000001fc0303', 'hex'), 400, ''],
    ['no method', `FROB /mcp HTTP/1.1\r\n${host}\r\n`, 400],
    ['TRACE', `TRACE /mcp HTTP/1.1\r\n${host}\r\n`, 405],
    ['no Host', 'GET /elsewhere HTTP/1.1\r\n\r\n', 400],
    ['two Hosts', get('/elsewhere', 'Host: evil.example\r\n'), 400],
    ['a user in Host', `GET /elsewhere HTTP/1.1\r\nHost: evil@127.0.0.1:${port}\r\n\r\n`, 403],
    ['an expectation', post('Expect: 200-ok\r\nContent-Length: 4\r\n'), 417],
    [
      'h2c with a request behind it',
      get('/elsewhere', 'Connection: Upgrade\r\nUpgrade: h2c\r\n') + get('/x'),
      '404 404',
    ],
    ['a foreign request behind ours', `${get('/elsewhere')}GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n`, '404 403'],
    ['a body behind a GET', get('/elsewhere', `Content-Length: ${smuggled.length}\r\n`) + smuggled, 404],
    ...[
      '/mcp%2fecho',
      '/%2e%2e/mcp',
      '/mcp/..%2f..%2fetc',
      '/mcp/%00',
      '//mcp',
      '/./mcp',
      '/mcp;x',
      '/mcp/%',
      '/mcp/%ff',
    ].map((path) => [`the path ${path}`, get(path), 404, 400] as const),
  ];
}

// ── WebSockets ───────────────────────────────────────────────────────────────

function handshakes({ port }: Target): [what: string, bytes: string, status: number][] {
  const own = `127.0.0.1:${port}`;
  const hello = (more: string, { host = own, path = '/ws', key = 'dGhlIHNhbXBsZSBub25jZQ==', version = '13' } = {}) =>
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}` +
    `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: ${version}\r\n\r\n`;
  return [
    ['a foreign page', hello('Origin: http://evil.example\r\n'), 403],
    ['a page without a name', hello('Origin: null\r\n'), 403],
    ['a page of another scheme', hello(`Origin: https://${own}\r\n`), 403],
    ['a foreign name', hello('', { host: 'evil.example' }), 403],
    ['a rebound name', hello(`Origin: http://evil.example:${port}\r\n`, { host: `evil.example:${port}` }), 403],
    ['a page elsewhere that names no origin', hello('Sec-Fetch-Site: cross-site\r\n'), 403],
    ['a wrong token', hello('Authorization: Bearer wrong-wrong-wrong-wrong\r\n'), 401],
    ['a token as a subprotocol', hello('Sec-WebSocket-Protocol: bearer\r\n'), 400],
    ['two Hosts', hello('Host: evil.example\r\n'), 400],
    ['another endpoint', hello('', { path: '/mcp' }), 404],
    ['no such server', hello('', { path: '/ws/nobody-of-that-name' }), 404],
    ['a path that climbs', hello('', { path: '/ws/..%2fmcp' }), 404],
    ['a short key', hello('', { key: 'x' }), 400],
    ['an unknown version', hello('', { version: '7' }), 400],
  ];
}
