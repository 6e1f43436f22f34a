// A server that is shared by nobody: each session has a process of its own, and the process goes with the session.

import { expect, it } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

it('share: session gives each host a process of its own, which ends with its session', async () => {
  const servers = { things: fixture('resources', { share: 'session' }) };
  await using d = await daemon({ servers, troupe: { http: { address: '127.0.0.1:0' } } });
  const url = `${await d.http()}/mcp/things`;
  const [ann, ben] = [await rawHost(url), await rawHost(url)];
  const add = async (host: typeof ann, name: string) => host.ask('tools/call', { name: 'add', arguments: { name } });
  await add(ann, 'hers');
  await add(ben, 'his');
  const tools = async (host: typeof ann) =>
    (await host.ask('tools/list')).result.tools.map(({ name }: { name: string }) => name);
  await eventually(async () => {
    expect(await tools(ann)).toContain('hers');
    expect(await tools(ben)).toContain('his');
  });
  expect([await tools(ann), await tools(ben)].map((all) => all.includes('his') && all.includes('hers'))).toEqual([
    false,
    false,
  ]);
  const own = async () => (await d.status()).servers.filter(({ name }) => name.startsWith('things@session-'));
  expect(new Set((await own()).map(({ pid }) => pid)).size).toBe(2);
  await ann.send('DELETE');
  await eventually(async () => expect(await own()).toHaveLength(1));
  expect(await tools(ben)).toContain('his');
  await Promise.all([ann.close(), ben.close()]);
});
