// Servers built on the SDK end when more than 10 MB come in at once. What they cannot take is refused to its caller and not sent,
// and what they can take arrives, also in the company of others.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';

const MIB = 1024 ** 2;
let d: Daemon;
let host: RawHost;

beforeAll(async () => {
  const everything = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const sdk = { command: process.execPath, args: [everything], 'x-troupe': { trust: true } };
  d = await daemon({ servers: { sdk }, troupe: { http: { address: '127.0.0.1:0' } } });
  await d.until('sdk', 'ready');
  host = await rawHost(`${await d.http()}/mcp/sdk`);
}, 60_000);
afterAll(async () => {
  await host.close();
  await d[Symbol.asyncDispose]();
});

const echo = (message: string, id = 1) => host.ask('tools/call', { name: 'echo', arguments: { message } }, id);
const small = () => Promise.all(Array.from({ length: 20 }, (_, index) => echo(`n${index}`, 100 + index)));

it('refuses an argument that would end the server, and its neighbours are unharmed', async () => {
  const { pid } = await d.server('sdk');
  const [refused, others] = await Promise.all([echo('x'.repeat(11 * MIB)), small()]);
  expect(refused.error.data.troupe).toMatchObject({ code: 'tooLarge', delivery: 'not sent' });
  expect(refused.error.message).toContain('raise x-troupe.maxSendBytes (10420224)');
  for (const { result } of others) expect(result.content[0].text).toMatch(/^Echo: n/);
  expect(await d.server('sdk')).toMatchObject({ pid, state: 'ready', restarts: 0 });
});

it('takes the server nothing by other ways: a subscription, a notification of the host’s own', async () => {
  const { pid } = await d.server('sdk');
  const uri = `demo://resource/${'x'.repeat(11 * MIB)}`;
  expect((await host.ask('resources/subscribe', { uri })).error.message).toContain('has at most 8192 characters');
  expect(await host.notify('notifications/skills/changed', { uri })).toBe(202);
  expect((await echo('still here')).result.content[0].text).toBe('Echo: still here');
  expect(await d.server('sdk')).toMatchObject({ pid, state: 'ready', restarts: 0 });
  await eventually(async () => expect(await d.log()).toContain('notifications/skills/changed has 11534'));
});

it('sends what is just small enough, among others', async () => {
  const { pid } = await d.server('sdk');
  const most = 10 * MIB - 64 * 1024 - 4_096 - 100;
  const [one, two, others] = await Promise.all([echo('y'.repeat(most), 2), echo('z'.repeat(most), 3), small()]);
  for (const { result } of [one, two]) expect(result.content[0].text).toHaveLength(most + 'Echo: '.length);
  for (const { result } of others) expect(result.content[0].text).toMatch(/^Echo: n/);
  expect((await d.server('sdk')).pid).toBe(pid);
});
