// A daemon is asked to run itself, by a host's entry that was imported or by its own address. It would see its own tools
// through itself, and those through itself again, without end.

import { expect, it } from 'vitest';
import { daemon, fixture, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const NAMES = { TROUPE_STATE: `\${TROUPE_STATE}`, TROUPE_CONFIG: `\${TROUPE_CONFIG}` };

it('refuses to be a server of itself, over stdio and over HTTP, and says why', async () => {
  const shim = { command: process.execPath, args: [MAIN, 'connect'], env: NAMES };
  const servers = { echo: fixture('echo'), self: shim };
  await using d = await daemon({ servers, troupe: { http: { address: '127.0.0.1:0' } }, settle: false });
  await d.write({ ...servers, again: { url: `${await d.http()}/mcp` } });
  for (const name of ['self', 'again'])
    await eventually(async () => {
      const { lastError, tools } = await d.server(name);
      expect(lastError).toContain('troupe cannot be a server of itself; remove that server from its configuration');
      expect(tools).toBe(0);
    }, 20_000);
  const call = await d.request('troupe.call.echo.echo', { message: 'well' });
  expect(call.data.content[0].text).toBe('well');
});
