// Who is let in at the HTTP door: the table of hosts, pages and tokens, on every path and for upgrades too.

import { createServer } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { BOTH, door, rawTo } from '../support/http-door.ts';

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'echo' });
const PATHS = ['/mcp', '/mcp/files', '/mcp/@small', '/sse', '/messages?sessionId=x', '/ws', '/elsewhere'];

describe('Host', () => {
  it('lets in its own names and the configured ones, and nobody else, on every path', async () => {
    await using d = await door({ settings: { hosts: ['mcp.example.com'] } });
    const status = async (host: string, path = '/elsewhere') => (await d.ask('GET', path, { host })).status;
    for (const host of [`127.0.0.1:${d.port}`, `localhost:${d.port}`, `LocalHost:${d.port}`, `[::1]:${d.port}`])
      expect(await status(host), host).toBe(404);
    expect(await status('mcp.example.com')).toBe(404);
    expect(await status('mcp.example.com:8443')).toBe(404);
    for (const host of [
      'evil.com',
      `evil.com:${d.port}`,
      'localhost',
      '127.0.0.1',
      `127.0.0.1:${d.port + 1}`,
      'x:localhost',
    ])
      for (const path of PATHS) expect(await status(host, path), `${host} ${path}`).toBe(403);
  });

  it('wants one at all', async () => {
    await using d = await door();
    expect(await d.raw('GET /mcp HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1.1 400/);
    expect(await d.raw('GET /mcp HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 403/);
  });

  it('wants no two, whichever is ours', async () => {
    await using d = await door();
    const ours = `Host: localhost:${d.port}\r\n`;
    for (const hosts of [`${ours}Host: evil\r\n`, `${ours}hOST: localhost:${d.port}\r\n`])
      expect(await d.raw(`GET /mcp HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 400/);
  });
});

describe('Origin', () => {
  it('lets in no page but its own and the configured ones, on every path and with every method', async () => {
    await using d = await door({ settings: { origins: ['https://app.example.com/'] } });
    for (const origin of ['http://evil.com', 'null', 'https://app.example.com.evil.com', 'http://app.example.com', ''])
      for (const path of PATHS)
        for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS'])
          expect((await d.ask(method, path, { origin })).status, `${method} ${path} ${origin}`).toBe(403);
    for (const origin of [`http://127.0.0.1:${d.port}`, `http://localhost:${d.port}`, 'https://app.example.com'])
      expect((await d.ask('GET', '/elsewhere', { origin })).status, origin).toBe(404);
  });

  it('tells a browser what a page of a configured origin may do, and tells others nothing', async () => {
    await using d = await door({ settings: { origins: ['https://app.example.com'] } });
    const origin = 'https://app.example.com';
    const wanted = { 'access-control-request-headers': 'content-type,mcp-param-region' };
    const before = await d.ask('OPTIONS', '/mcp', { origin, 'access-control-request-method': 'POST', ...wanted });
    expect(before.status).toBe(204);
    expect(before.headers['access-control-allow-origin']).toBe(origin);
    expect(before.headers['access-control-allow-methods']).toContain('DELETE');
    expect(before.headers['access-control-allow-headers']).toMatch(/Mcp-Session-Id.*mcp-param-region/);
    const said = await d.post(
      { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '1' } },
      { origin },
    );
    expect(said.headers['access-control-allow-origin']).toBe(origin);
    expect(said.headers['access-control-expose-headers']).toContain('Mcp-Session-Id');
    expect(said.headers.vary).toBe('Origin');
    for (const headers of [(await d.ask('OPTIONS', '/mcp')).headers, (await d.post(PING)).headers])
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('tokens', () => {
  const tokens = { ann: 'a'.repeat(32), bob: 'b'.repeat(32) };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it('take none on the loopback, but no wrong one', async () => {
    await using d = await door({ settings: { tokens } });
    const mine = await d.enter();
    expect((await d.post(PING, mine)).status).toBe(200);
    for (const authorization of ['Bearer wrong', `Bearer ${tokens.ann}x`, `Basic ${tokens.ann}`, 'Bearer', tokens.ann])
      for (const path of PATHS) {
        const { status, headers, text } = await d.ask('GET', path, { authorization });
        expect(status, `${authorization} ${path}`).toBe(401);
        expect(headers['www-authenticate']).toMatch(/^Bearer .*invalid_token/);
        expect(text).not.toContain(tokens.ann);
      }
    expect((await d.ask('GET', `/elsewhere?token=${tokens.ann}&access_token=wrong`)).status).toBe(404);
  });

  it('say who somebody is, and a session is that one’s alone', async () => {
    await using d = await door({ settings: { tokens } });
    const anns = await d.enter('2025-11-25', bearer(tokens.ann));
    expect((await d.post(PING, { ...anns, ...bearer(tokens.ann) })).status).toBe(200);
    expect((await d.post(PING, { ...anns, ...bearer(tokens.bob) })).status).toBe(404);
    expect((await d.post(PING, anns)).status).toBe(404);
    expect(d.sessions.find(anns['mcp-session-id'], 'ann')).toBeDefined();
  });

  it('are required beyond the loopback, where a door without any does not open', async () => {
    const address = { host: '0.0.0.0', port: 0 };
    await expect(door({ address })).rejects.toThrow(/0\.0\.0\.0 can be reached from elsewhere; set a token/);
    await using d = await door({ address, settings: { tokens, origins: ['https://app.example.com'] } });
    expect(d.url).toBe(`http://127.0.0.1:${d.port}`);
    const { status, headers } = await d.post(PING);
    expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer realm="troupe"']);
    expect((await d.ask('GET', '/elsewhere', bearer(tokens.bob))).status).toBe(404);
    expect((await d.ask('OPTIONS', '/mcp')).status).toBe(401);
    expect((await d.ask('OPTIONS', '/mcp', { origin: 'https://app.example.com' })).status).toBe(204);
    const answers = ['/mcp', '/mcp/files', '/mcp/nobody', '/mcp/@none'].map(async (path) => {
      const { status, headers } = await d.ask('OPTIONS', path, { origin: 'https://app.example.com' });
      return [status, headers['access-control-allow-methods']];
    });
    expect(new Set((await Promise.all(answers)).map(String)).size).toBe(1); // nobody learns which servers there are
    for (const path of ['/sse/nobody', '/messages', '/ws/nobody'])
      expect((await d.ask('OPTIONS', path, { origin: 'https://app.example.com' })).status, path).toBe(204);
    expect((await d.post(PING, { origin: 'https://app.example.com' })).status).toBe(401);
    const here = Object.values(networkInterfaces())
      .flat()
      .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
    if (here === undefined) return; // a machine without a network has no further address
    const asked = `GET /elsewhere HTTP/1.1\r\nHost: ${here}:${d.port}\r\nConnection: close\r\n`;
    expect(await rawTo(d.port, `${asked}\r\n`)).toMatch(/^HTTP\/1.1 403/); // it came to 127.0.0.1
  });
});

describe('an upgrade', () => {
  const upgrade = (path: string, host: string, more = '') =>
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`;

  it('is handed on with its scope and principal, after the same checks', async () => {
    const taken: string[] = [];
    await using d = await door({
      settings: { tokens: { ann: 'secret' } },
      onUpgrade: (scope, principal, _req, socket) => {
        taken.push(`${scope} ${principal}`);
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      },
    });
    const here = `127.0.0.1:${d.port}`;
    expect(await d.raw(upgrade('/ws', here))).toMatch(/ 101 /);
    expect(await d.raw(upgrade('/ws/files', here, 'Authorization: Bearer secret\r\n'))).toMatch(/ 101 /);
    expect(await d.raw(upgrade('/ws/%40small', here))).toMatch(/ 101 /);
    expect(taken).toEqual([' _', 'files ann', '@small _']);
    expect(await d.raw(upgrade('/ws', 'evil.com'))).toMatch(/^HTTP\/1.1 403/);
    expect(await d.raw(upgrade('/ws', here, 'Origin: http://evil.com\r\n'))).toMatch(/^HTTP\/1.1 403/);
    expect(await d.raw(upgrade('/ws', here, 'Authorization: Bearer x\r\n'))).toMatch(
      /^HTTP\/1.1 401[\s\S]*WWW-Authenticate/,
    );
    expect(await d.raw(upgrade('/ws/nobody', here))).toMatch(/^HTTP\/1.1 404/);
    expect(await d.raw(upgrade('/mcp', here))).toMatch(/^HTTP\/1.1 404/);
    expect(taken.length).toBe(3);
  });

  it('is none with another method, and a browser’s question does not let anybody in', async () => {
    const taken: string[] = [];
    await using d = await door({
      address: { host: '0.0.0.0', port: 0 },
      settings: { tokens: { ann: 'secret' }, origins: ['https://app.example.com'] },
      onUpgrade: (_scope, principal, _req, socket) => {
        taken.push(principal);
        socket.destroy();
      },
    });
    const asked = upgrade('/ws', `127.0.0.1:${d.port}`, 'Origin: https://app.example.com\r\n').replace(
      'GET',
      'OPTIONS',
    );
    const next = `GET /elsewhere HTTP/1.1\r\nHost: 127.0.0.1:${d.port}\r\nConnection: close\r\n\r\n`;
    expect(await d.raw(asked + next)).toMatch(/^HTTP\/1.1 204[\s\S]*HTTP\/1.1 401/);
    expect(taken).toEqual([]);
  });

  it('to anything but a WebSocket is passed over, and the request is served', async () => {
    await using d = await door();
    const mine = await d.enter();
    const wish = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n';
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${d.port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n`;
    const rest = `Mcp-Session-Id: ${mine['mcp-session-id']}\r\nContent-Length: ${PING.length}\r\n`;
    const plain = head + rest;
    const said = await d.raw(`${plain}${wish}\r\n${PING}${plain}Connection: close\r\n\r\n${PING}`);
    expect(said.match(/HTTP\/1.1 200 OK/g)?.length).toBe(2);
    expect(said.match(/"result":\{\}/g)?.length).toBe(2);
    const evil = 'GET /mcp HTTP/1.1\r\nHost: evil.com\r\n';
    expect(await d.raw(`${evil}${wish}\r\n${evil}Connection: close\r\n\r\n`)).toMatch(/1.1 403[\s\S]*1.1 403/);
  });
});

describe('an upgrade that is passed over', () => {
  it('leaves nothing on the connection, however often it is asked for', async () => {
    const seen: number[] = [];
    await using d = await door({
      standingOf(socket) {
        seen.push(socket.listenerCount('error') + socket.listenerCount('close'));
        return 'owner';
      },
    });
    const wish = `GET /elsewhere HTTP/1.1\r\nHost: 127.0.0.1:${d.port}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`;
    const socket = connect(d.port, '127.0.0.1');
    for (let at = 0; at < 6; at += 1) {
      socket.write(wish);
      expect(String(await new Promise((resolve) => socket.once('data', resolve)))).toMatch(/^HTTP\/1\.1 404/);
    }
    socket.destroy();
    expect(seen).toEqual(Array(6).fill(seen[0]));
  });
});

describe('an upgrade behind a request that is not answered yet', () => {
  it.each([
    ['h2c', '/elsewhere'],
    ['websocket', '/ws'],
  ])('to %s ends the connection, and the request with it', async (protocol, path) => {
    await using d = await door({ onUpgrade: (_scope, _principal, _req, socket) => void socket.end('taken') });
    const { 'mcp-session-id': session } = await d.enter();
    const host = `Host: 127.0.0.1:${d.port}\r\n`;
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'wait' });
    const types = `Content-Type: application/json\r\nAccept: ${BOTH}\r\nMcp-Session-Id: ${session}\r\n`;
    const asked = `POST /mcp HTTP/1.1\r\n${host}${types}Content-Length: ${body.length}\r\n\r\n${body}`;
    const wish = `GET ${path} HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
    const isAsked = eventually(() => expect(d.waiting).toHaveLength(1));
    const said = rawTo(
      d.port,
      asked,
      isAsked.then(() => wish),
    );
    expect(await said).toBe('');
    await eventually(() => expect([d.connections().used, d.callers]).toEqual([0, ['gone 1']]));
    d.waiting[0]?.line.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    expect((await d.ask('GET', '/elsewhere')).status).toBe(404);
  });
});

describe('the address', () => {
  it('is said to be taken, or to be none of this machine', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    try {
      await expect(door({ address: { host: '127.0.0.1', port } })).rejects.toThrow(
        `127.0.0.1:${port} is taken; stop what listens there, or choose another address with --http HOST:PORT`,
      );
    } finally {
      other.close();
    }
    await expect(door({ address: { host: '192.0.2.1', port: 0 }, settings: { tokens: { a: 'b' } } })).rejects.toThrow(
      /192\.0\.2\.1 is no address of this machine/,
    );
  });

  it('names nobody and nothing in its answers', async () => {
    await using d = await door();
    const { headers, text } = await d.ask('GET', '/elsewhere');
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['server', 'x-powered-by']));
    expect(text).not.toContain(String(d.port));
  });
});
