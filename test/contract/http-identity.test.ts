// Whose a connection on the loopback is: its owner needs no token, other users of this machine and our own servers do, on every
// path. The kernel's tables are the real ones.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, copyFile, cp } from 'node:fs/promises';
import { Agent, request as ask } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { peersOf } from '../../src/doors/http/peers.ts';
import { MARKER } from '../../src/protocol/version.ts';
import { serversSockets } from '../../src/servers/stdio/descendants.ts';
import { ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { BOTH, type Door, type DoorOptions, door } from '../support/http-door.ts';
import { scratch } from '../support/scratch.ts';
import { AS_STRANGER, asStranger, OWNER_UID, SCRIPT } from '../support/stranger.ts';

const INITIALIZE = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});
const TOKEN = 'a'.repeat(32);
const CLOSE = 'Connection: close\r\n';
const SHOWN = `Authorization: Bearer ${TOKEN}\r\n`;
const PAGE = 'Origin: https://app.example.com\r\n';

const letter = (method: string, path: string, port: number, more = '') =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nAccept: ${BOTH}\r\n${more}`;
const posted = (port: number, more = CLOSE) =>
  `${letter('POST', '/mcp', port, more)}Content-Length: ${INITIALIZE.length}\r\n\r\n${INITIALIZE}`;
const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const statuses = (said: string) => [...said.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
const noServers = async () => new Set<string>();

const isTold = peersOf({ owner: OWNER_UID, serversSockets: noServers }) !== undefined;

describe.runIf(isTold)('another user of this machine', () => {
  const guarded = (options: DoorOptions = {}) =>
    door({
      standingOf: peersOf({ owner: OWNER_UID, serversSockets: noServers }),
      ...options,
      settings: { tokens: { ann: TOKEN }, origins: ['https://app.example.com'], ...options.settings },
    });

  it('is let in nowhere without a token, and is told what to do', async () => {
    const taken: string[] = [];
    await using d = await guarded({
      onUpgrade: (_scope, principal, _req, socket) => {
        taken.push(principal);
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      },
    });
    const { port } = d;
    const [plain = '', kept = '', stream = '', socket = '', again = '', mapped = ''] = await asStranger(
      { port, bytes: posted(port) },
      { port, bytes: posted(port, '') + posted(port) },
      { port, bytes: `${letter('GET', '/sse', port, CLOSE)}\r\n` },
      { port, bytes: letter('GET', '/ws', port, upgrade) },
      { port, bytes: posted(port, 'Connection: Upgrade\r\nUpgrade: h2c\r\n') + posted(port) },
      { port, host: '::ffff:127.0.0.1', bytes: posted(port) },
    );
    expect([plain, kept, stream, socket, again, mapped].map(statuses)).toEqual([
      ...[[401], [401, 401], [401], [401], [401, 401], [401]],
    ]);
    expect(plain).toMatch(/WWW-Authenticate: Bearer realm="troupe"[\s\S]*`troupe env`/);
    expect([taken, d.sessions.count]).toEqual([[], 0]);
  });

  it('is let in with a token, also on a connection that was refused before, and with a page that may come in', async () => {
    await using d = await guarded();
    const { port } = d;
    const [shown = '', again = '', asked = '', page = ''] = await asStranger(
      { port, bytes: posted(port, CLOSE + SHOWN) },
      { port, bytes: posted(port, '') + posted(port, CLOSE + SHOWN) },
      { port, bytes: `${letter('OPTIONS', '/mcp', port, CLOSE + PAGE)}\r\n` },
      { port, bytes: posted(port, CLOSE + PAGE) },
    );
    expect([shown, again, asked, page].map(statuses)).toEqual([[200], [401, 200], [204], [401]]);
    expect(page).toMatch(/Access-Control-Allow-Origin: https:\/\/app\.example\.com/);
    expect(d.sessions.count).toBe(2);
  });

  it('is nobody over IPv6 either', async () => {
    await using d = await guarded({ address: { host: '::1', port: 0 } });
    const { port } = d;
    expect((await asStranger({ port, host: '::1', bytes: posted(port) })).map(statuses)).toEqual([[401]]);
  });

  it('is not taken for root after it has closed its end, as the kernel’s table would have it', async () => {
    const standingOf = peersOf({ owner: OWNER_UID, serversSockets: noServers });
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const ended = new Promise<Socket>((resolve) =>
      server.once('connection', (socket) => socket.resume().once('end', () => resolve(socket))),
    );
    await asStranger({ port, bytes: 'x', leaves: true });
    const socket = await ended;
    await eventually(() => expect(rowsOf(socket.remotePort)).toMatch(/ 05 \S+ \S+ \S+ +0 +0 0 /));
    expect(await standingOf?.(socket)).toBe('unknown');
    socket.destroy();
    server.close();
  });
});

/** The rows of the client's end. */
const rowsOf = (port = 0): string =>
  readFileSync('/proc/self/net/tcp', 'latin1')
    .split('\n')
    .filter((row) => row.includes(`: 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} `))
    .join('\n');

describe.runIf(isTold)('the owner', () => {
  it('needs no token over IPv4, over IPv6, and with an IPv6 socket to an IPv4 address', async () => {
    await using four = await door();
    await using six = await door({ address: { host: '::1', port: 0 } });
    expect(statuses(await send(four.port, '127.0.0.1'))).toEqual([200]);
    expect(statuses(await send(six.port, '::1'))).toEqual([200]);
    expect(statuses(await send(four.port, '::ffff:127.0.0.1'))).toEqual([200]);
  });

  it('is looked up once for a connection that is kept', async () => {
    let looks = 0;
    await using d = await door({
      standingOf: peersOf({
        owner: process.geteuid?.() ?? -1,
        async serversSockets() {
          looks += 1;
          return new Set();
        },
      }),
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let at = 0; at < 5; at += 1) expect(await viaAgent(d, agent)).toBe(200);
    agent.destroy();
    expect(looks).toBe(1);
  });

  it('shares a lookup with all who come at the same time', async () => {
    let looks = 0;
    await using d = await door({
      settings: { maxSessions: 100 },
      standingOf: peersOf({
        owner: process.geteuid?.() ?? -1,
        async serversSockets() {
          looks += 1;
          return new Set();
        },
      }),
    });
    const answers = await Promise.all(Array.from({ length: 60 }, () => send(d.port, '127.0.0.1')));
    expect(answers.flatMap(statuses)).toEqual(Array(60).fill(200));
    expect(looks).toBeLessThan(60);
  });

  it('needs one where everybody does: it is demanded, others can reach the door, or the system does not tell', async () => {
    await using demanded = await door({ settings: { requireToken: true, tokens: { _: TOKEN } } });
    await using open = await door({ address: { host: '0.0.0.0', port: 0 }, settings: { tokens: { _: TOKEN } } });
    await using untold = await door({ standingOf: undefined, settings: { tokens: { _: TOKEN } } });
    for (const { port } of [demanded, open, untold]) {
      expect(statuses(await send(port, '127.0.0.1'))).toEqual([401]);
      expect(statuses(await send(port, '127.0.0.1', CLOSE + SHOWN))).toEqual([200]);
    }
    expect(demanded.sessions.count).toBe(1);
  });

  it('does not lend its name to what a proxy forwards', async () => {
    await using d = await door({ settings: { tokens: { _: TOKEN } } });
    for (const said of ['X-Forwarded-For: 203.0.113.7', 'Forwarded: for=203.0.113.7', 'X-Real-IP: ::1', 'Via: 1.1 x']) {
      expect(statuses(await send(d.port, '127.0.0.1', `${CLOSE}${said}\r\n`)), said).toEqual([401]);
      expect(statuses(await send(d.port, '127.0.0.1', `${CLOSE}${SHOWN}${said}\r\n`)), said).toEqual([200]);
    }
  });

  it('is nobody who cannot be found', async () => {
    const standingOf = peersOf({ owner: process.geteuid?.() ?? -1, serversSockets: noServers });
    const end = { remoteAddress: '127.0.0.1', remotePort: 1, localAddress: '127.0.0.1', localPort: 2 };
    expect(await standingOf?.(end as Socket)).toBe('unknown');
    expect(await standingOf?.({} as Socket)).toBe('unknown');
  });
});

const NAMELESS = ['--user', '--map-user=65534', '--map-group=65534'];
const mayUnshare = isTold && (await execa('unshare', [...NAMELESS, 'true'], { reject: false })).exitCode === 0;

it.runIf(mayUnshare)('nobody is known by the uid that stands for all whom a user namespace does not know', async () => {
  const script = `
    const { peersOf } = await import('${ROOT}dist/src/doors/http/peers.js');
    console.log([65534, 65533].map((owner) => typeof peersOf({ owner, serversSockets: async () => new Set() })).join());`;
  const node = [process.execPath, '--input-type=module', '-e', script];
  const { stdout } = await execa('unshare', [...NAMELESS, ...node]);
  expect([stdout, typeof peersOf({ owner: 65534, serversSockets: noServers })]).toEqual([
    'undefined,function',
    'function',
  ]);
});

describe.runIf(isTold)('a server of ours', () => {
  const FAMILY = 'f00df00df00df00d';
  const doorFor = (): Promise<Door> =>
    door({
      standingOf: peersOf({
        owner: process.geteuid?.() ?? -1,
        serversSockets: serversSockets(`${FAMILY}:1.1.1`, FAMILY),
      }),
      settings: { tokens: { ann: TOKEN } },
    });
  const bytesFor = ({ port }: Door) => JSON.stringify([{ port, bytes: posted(port) }]);
  const stray = (environment: string, d: Door) =>
    execa('sh', ['-c', `setsid env ${environment} "$0" -e "$1" "$2" & exit`, process.execPath, SCRIPT, bytesFor(d)]);

  it('is not let in for its uid, and says with which token it would be', async () => {
    await using d = await doorFor();
    const { stdout } = await execa(process.execPath, ['-e', SCRIPT, bytesFor(d)]);
    expect(statuses(stdout)).toEqual([401]);
    expect(stdout).toContain('servers that troupe runs come in with a bearer token only');
    const shown = JSON.stringify([{ port: d.port, bytes: posted(d.port, CLOSE + SHOWN) }]);
    expect(statuses((await execa(process.execPath, ['-e', SCRIPT, shown])).stdout)).toEqual([200]);
  });

  it('is known by its parent, in a session of its own and without a mark', async () => {
    await using d = await doorFor();
    const { stdout } = await execa('sh', [
      '-c',
      'setsid -w env -i "$0" -e "$1" "$2"',
      process.execPath,
      SCRIPT,
      bytesFor(d),
    ]);
    expect(statuses(stdout)).toEqual([401]);
  });

  it('is known by its mark when it has left its session and its parent; a program without it is the owner’s', async () => {
    await using d = await doorFor();
    expect(statuses((await stray(`${MARKER}=${FAMILY}-work`, d)).stdout)).toEqual([401]);
    expect(statuses((await stray(`${MARKER}=of-another-family`, d)).stdout)).toEqual([200]);
  });

  it('is known when the kernel hides what it holds, and the owner still is the owner', async () => {
    await using dir = await scratch('/tmp');
    await chmod(dir.path, 0o755);
    // The kernel hides what a process holds whose program may not be read. Root sees it all the same, so root does not ask.
    const hidden = join(dir.path, 'hidden');
    await copyFile(process.execPath, hidden);
    await chmod(hidden, 0o111);
    await cp(join(ROOT, 'dist/src'), join(dir.path, 'src'), { recursive: true });
    await cp(join(ROOT, 'package.json'), join(dir.path, 'package.json'));
    const shop = execa(process.execPath, ['--input-type=module', '-e', SHOP, dir.path, hidden], AS_STRANGER);
    const [said] = (await Promise.race([once(shop.stdout, 'data'), shop])) as [Buffer];
    const [port, heard] = String(said).split(' ');
    expect([heard, await asStranger({ port: Number(port), bytes: '' })]).toEqual(['server', ['owner']]);
    shop.stdin.end();
    expect((await shop).exitCode).toBe(0);
  });
});

/** Tells everybody who they are to it: a server of its own, which stays, and whoever else comes. */
const SHOP = `
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
const [at, hidden] = process.argv.slice(1);
const { peersOf } = await import(at + '/src/doors/http/peers.js');
const { serversSockets } = await import(at + '/src/servers/stdio/descendants.js');
const standingOf = peersOf({ owner: process.geteuid(), serversSockets: serversSockets('none:1.1.1', 'none') });
const shop = createServer(async (socket) => socket.end(await standingOf(socket)));
shop.listen(0, '127.0.0.1', () => {
  const { port } = shop.address();
  const knock = 'process.stdin.resume(); require("net").connect(' + port + ').on("data", (said) => console.log(String(said)))';
  const server = spawn(hidden, ['-e', knock]);
  server.stdout.once('data', (said) => console.log(port + ' ' + String(said).trim() + ' '));
  process.stdin.resume().on('end', () => { server.stdin.end(); shop.close(); });
});
`;

function send(port: number, host: string, more = CLOSE): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write(posted(port, more)));
    let said = '';
    socket.on('data', (chunk) => {
      said += chunk;
    });
    socket.on('close', () => resolve(said));
  });
}

function viaAgent({ port }: Door, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', accept: BOTH };
    const asking = ask({ port, path: '/mcp', method: 'POST', agent, headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
    });
    asking.on('error', reject).end(INITIALIZE);
  });
}
