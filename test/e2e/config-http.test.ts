// Where the HTTP door listens: what the file and the command line say, what `status` and `env` show of it, and the token
// that it wants as soon as it can be reached from elsewhere.

import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

describe('the HTTP door', () => {
  let d: Daemon;
  beforeAll(async () => {
    d = await daemon({ servers: { echo: fixture('echo') }, troupe: { http: { address: '127.0.0.1:0' } } });
  });
  afterAll(async () => {
    await d.cli('down', '--all');
    await d[Symbol.asyncDispose]();
  });

  const shown = async (verb: string, ...more: string[]) => JSON.parse((await d.cli(verb, '--json', ...more)).stdout);

  test('listens where the file says, and status and env show the address', async () => {
    const { http, sessions } = await shown('status');
    expect(http).toEqual({ state: 'listening', url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(sessions).toBe(0);
    expect(await shown('env')).toEqual({
      ...{ NATS_URL: expect.stringMatching(/^nats:/), TROUPE_HTTP: http.url },
      TROUPE_TOKEN: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect((await d.cli('env')).stdout).toContain(`TROUPE_HTTP=${http.url}\nexport TROUPE_HTTP`);
    expect((await d.cli('status')).stdout).toMatch(/^http +listening +http:\/\/127\.0\.0\.1:\d+\/mcp/m);
    expect(await initialize(http.url)).toBe(200);
    expect((await shown('status')).sessions).toBe(1);
  });

  test('comes back on the port that hosts know, though it could have any', async () => {
    const { http } = await shown('status');
    await d.kill();
    await d.start();
    expect((await shown('status')).http).toEqual(http);
  });

  test('is off when it is told to be, also in the background', async () => {
    expect(await d.cli('up', '--detach', '--instance', 'off', '--http', 'off')).toMatchObject({ exitCode: 0 });
    expect((await shown('status', '--instance', 'off')).http).toEqual({ state: 'off', url: null });
    expect(Object.keys(await shown('env', '--instance', 'off'))).toEqual(['NATS_URL']);
  });

  test('a port that was asked for and is taken is the reason why nothing starts', async () => {
    const taken = createServer();
    const port = await new Promise<number>((resolve) =>
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port)),
    );
    const { exitCode, stdout } = await d.cli('up', '--instance', 'taken', '--http', `:${port}`);
    taken.close();
    expect([exitCode, stdout]).toEqual([1, expect.stringMatching(new RegExp(`troupe stopped: .*${port}`))]);
  });

  test('beyond this machine it wants a token, which env shows and the log does not', async () => {
    await d.cli('up', '--detach', '--instance', 'wide', '--http', '0.0.0.0:0');
    const { TROUPE_HTTP, TROUPE_TOKEN } = await shown('env', '--instance', 'wide');
    const url = `http://127.0.0.1:${new URL(TROUPE_HTTP).port}`;
    expect(await initialize(url)).toBe(401);
    expect(await initialize(url, TROUPE_TOKEN)).toBe(200);
    expect((await stat(join(d.state, 'http-token'))).mode & 0o777).toBe(0o600);
    for (const file of ['logs/troupe-wide.log', 'logs/up-wide.log'])
      expect(await readFile(join(d.state, file), 'utf8')).not.toContain(TROUPE_TOKEN);
    expect((await d.cli('status', '--instance', 'wide')).stdout).not.toContain(TROUPE_TOKEN);
  });

  test('where it is told to, it wants a token from everybody, and install tells a host where to find it', async () => {
    await d.down();
    await d.write({ echo: fixture('echo') }, { http: { address: '127.0.0.1:0', requireToken: true } });
    await d.start();
    const { TROUPE_HTTP, TROUPE_TOKEN } = await shown('env');
    expect(await initialize(TROUPE_HTTP)).toBe(401);
    expect(await initialize(TROUPE_HTTP, TROUPE_TOKEN)).toBe(200);
    expect((await shown('status')).http).toEqual({ state: 'listening', url: TROUPE_HTTP, needsToken: true });
    expect((await d.cli('status')).stdout).toMatch(/^http +listening .*\/mcp +with the token of troupe env/m);
    const { stdout } = await d.cli('install', 'claude-code', '--url', '--print');
    expect(stdout).toContain(`"Authorization": "Bearer \${TROUPE_TOKEN}"`);
    expect(stdout).not.toContain(TROUPE_TOKEN);
  });
});

async function initialize(url: string, token?: string): Promise<number> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(INITIALIZE),
  });
  await response.text();
  return response.status;
}
