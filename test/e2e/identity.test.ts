// Who is the owner at the doors of a real daemon: the user who runs it, by their uid; not another user of the machine, and not a
// server that runs under the same uid, which is given no way back in.

import { readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { rawHost } from '../support/host.ts';
import { asStranger, OWNER_UID } from '../support/stranger.ts';

const TOKEN = 'a-long-token-of-the-knocking-server';
const BODY = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});

let d: Daemon;
let url = '';
beforeAll(async () => {
  const knocks = fixture('knocks', { approve: 'never', env: 'inherit' });
  d = await daemon({
    servers: { knocks },
    troupe: { http: { tokens: { knocks: TOKEN } } },
    env: { TROUPE_TOKEN: 'of-another-daemon', NATS_CREDS: '/nowhere', EDITOR: 'ed' },
  });
  url = await d.http();
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const said = async (tool: string, args: object = {}): Promise<string> =>
  (await d.request(`troupe.call.knocks.${tool}`, args)).data.content[0].text;

it.runIf(process.platform === 'linux' && OWNER_UID === 0)('another user of the machine', async () => {
  const { port, host } = new URL(url);
  const head = `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nConnection: close\r\n`;
  const rest = `Accept: application/json, text/event-stream\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
  const { TROUPE_TOKEN } = JSON.parse((await d.cli('env', '--json')).stdout);
  const [plain = '', shown = ''] = await asStranger(
    { port: Number(port), bytes: head + rest },
    { port: Number(port), bytes: `${head}Authorization: Bearer ${TROUPE_TOKEN}\r\n${rest}` },
  );
  expect([plain, shown]).toEqual([expect.stringMatching(/^HTTP\/1.1 401 /), expect.stringMatching(/^HTTP\/1.1 200 /)]);
});

describe.runIf(process.platform === 'linux')('a server', () => {
  it('does not come in for its uid, nor does what it starts; with a token that it was given it does', async () => {
    expect(await said('knock', { url })).toBe('401');
    expect(await said('stray', { url })).toBe('401');
    expect(await said('knock', { url, token: TOKEN })).toBe('200');
    await (await rawHost(`${url}/mcp`)).close(); // while a program of the owner's does
  });

  it('is given no variable that leads back, though it inherits the others, and no descriptor of the daemon’s', async () => {
    const names = (await said('environment')).split(' ');
    expect(names).toContain('EDITOR');
    expect(names.filter((name) => /^(TROUPE|NATS)_/.test(name))).toEqual(['TROUPE_DAEMON']);
    const { pid } = await d.server('knocks');
    const [its, daemons, tests] = [pid as number, d.pid, process.pid].map(targetsOf) as [string[], string[], string[]];
    const ours = daemons.filter((target) => !/^\/dev\/|^anon_inode:/.test(target) && !tests.includes(target));
    expect(its.filter((target) => ours.includes(target))).toEqual([]);
  });
});

function targetsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // it was closed between the two looks
    }
  });
}
