// A remote server in an outage would be tried again in ten minutes. Whoever wants it, at whichever door, has it tried at once.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import { json, listen, scripted } from '../support/remote.ts';

type Web = Awaited<ReturnType<typeof listen>>;

const script = scripted({
  session: () => undefined,
  call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: { content: [] } }),
});
let web: Web;
let d: Daemon;
let url: string;

beforeAll(async () => {
  web = await listen(script);
  const settings = { trust: true, restart: { intensity: 1_000, backoffMs: [600_000] } };
  const servers = {
    far: { type: 'http', url: web.url, 'x-troupe': { ...settings, holdMs: 500 } },
    hasty: { type: 'http', url: web.url, 'x-troupe': { ...settings, holdMs: 0 } },
  };
  d = await daemon({ servers, troupe: { http: { address: '127.0.0.1:0' } } });
  url = await d.http();
}, 60_000);
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await web[Symbol.asyncDispose]();
});

const call = (server: string) => d.request(`troupe.call.${server}.do`, {});

/** The server leaves, and calls find that it has. */
async function outage(name: string): Promise<void> {
  await web[Symbol.asyncDispose]();
  await eventually(async () => {
    const { state } = await d.server(name);
    if (state === 'ready') await call(name);
    expect(state).toBe('waiting');
  });
}

it.each<[string, string, () => Promise<unknown>]>([
  ['a call', 'far', () => call('far')],
  ['a call that does not wait', 'hasty', () => call('hasty')],
  ['a list on the bus', 'far', () => d.request('troupe.list.far.tools')],
  ['a list on the command line', 'far', () => d.cli('tools', 'far')],
  ['a host that opens a session', 'far', async () => (await rawHost(`${url}/mcp/far`)).close()],
  ['a host that opens a session with all servers', 'far', async () => (await rawHost(`${url}/mcp`)).close()],
])('is tried again for %s', async (_, name, wish) => {
  await d.until(name, 'ready');
  await outage(name);
  web = await listen(script, web.port);
  await wish();
  await d.until(name, 'ready', 5_000);
});

it('is tried again for a list that a host reads in a session that it has', async () => {
  const [own, all] = await Promise.all([rawHost(`${url}/mcp/far`), rawHost(`${url}/mcp`)]);
  for (const host of [own, all]) {
    await outage('far');
    web = await listen(script, web.port);
    expect((await host.ask('tools/list')).result.tools).toHaveLength(host === own ? 1 : 2);
    await d.until('far', 'ready', 5_000);
  }
  await Promise.all([own.close(), all.close()]);
});
