// A daemon is asked to run itself, by a host's entry that was imported or by its own address. It would see its own tools
// through itself, and those through itself again, without end.

import { readFile } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, it } from 'vitest';
import { daemon, fixture, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const NAMES = { TROUPE_STATE: `\${TROUPE_STATE}`, TROUPE_CONFIG: `\${TROUPE_CONFIG}` };

it('refuses to be a server of itself, whatever the transport, and says why', async () => {
  const shim = { command: process.execPath, args: [MAIN, 'connect'], env: NAMES };
  const servers = { echo: fixture('echo'), self: shim };
  await using d = await daemon({ servers, troupe: { http: { address: '127.0.0.1:0' } }, settle: false });
  const url = await d.http();
  const again = { url: `${url}/mcp` };
  const sse = { type: 'sse', url: `${url}/sse` };
  const ws = { type: 'ws', url: `${url.replace('http', 'ws')}/ws` };
  await d.write({ ...servers, again, sse, ws });
  for (const name of ['self', 'again', 'sse', 'ws'])
    await eventually(async () => {
      const { lastError, tools } = await d.server(name);
      expect(lastError).toContain('troupe cannot be a server of itself; remove that server from its configuration');
      expect(tools).toBe(0);
    }, 20_000);
  const call = await d.request('troupe.call.echo.echo', { message: 'well' });
  expect(call.data.content[0].text).toBe('well');

  // A program that one of its servers runs is another matter, though it has the same environment.
  const environment = await readFile(`/proc/${(await d.server('echo')).pid}/environ`, 'utf8');
  const TROUPE_DAEMON = /TROUPE_DAEMON=([^\0]*)/.exec(environment)?.[1] ?? '';
  const host = new Client({ name: 'host', version: '1' });
  const env = { ...d.env, TROUPE_DAEMON };
  await host.connect(new StdioClientTransport({ command: process.execPath, args: [MAIN, 'connect', 'echo'], env }));
  expect((await host.listTools()).tools.map(({ name }) => name)).toContain('echo');
  await host.close();
});
