// A server that answers the question for its tools with an error: whoever asks for them hears that error, at once and at
// every door, the other servers are shown nevertheless, and the next question is answered as soon as the server can. Nor is a list
// empty that was never read for another reason.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { rawHost } from '../support/host.ts';
import { scratch } from '../support/scratch.ts';

const ERROR = { code: -32050, message: 'no lists today' };
let dir: Awaited<ReturnType<typeof scratch>>;
let d: Daemon;
let url: string;

beforeAll(async () => {
  dir = await scratch();
  const sulks = fixture('sulks', {}, { SULKS_UNTIL: join(dir.path, 'well') });
  const mute = fixture('sulks', { enabled: false }, { SULKS_SILENT: '1', SULKS_UNTIL: join(dir.path, 'said') });
  const once = { intensity: 0, periodMs: 60_000, backoffMs: [50] };
  const unborn = fixture('dies-at-start', { enabled: false, restart: once });
  d = await daemon({
    servers: { echo: fixture('echo'), sulks, mute, unborn },
    troupe: { http: { address: '127.0.0.1:0' }, profiles: { sulking: { servers: ['sulks'] } } },
  });
  url = await d.http();
}, 60_000);
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

it('gives a host the error of the server itself, and lists the other servers', async () => {
  const [own, all] = await Promise.all([rawHost(`${url}/mcp/sulks`), rawHost(`${url}/mcp`)]);
  expect((await own.ask('tools/list')).error).toEqual(ERROR);
  const { tools } = (await all.ask('tools/list')).result;
  expect(tools.map(({ name }: { name: string }) => name)).toContain('echo__echo');
  expect(tools.some(({ name }: { name: string }) => name.startsWith('sulks'))).toBe(false);
  await Promise.all([own.close(), all.close()]);
});

it('gives the error also where there are many servers, if none of them gives a list', async () => {
  const host = await rawHost(`${url}/mcp/@sulking`);
  expect((await host.ask('tools/list')).error).toEqual(ERROR);
  await host.close();
});

it.each([
  ['stopped', 'server unborn is stopped; troupe start unborn'],
  ['failed', 'server unborn is failed: exited with code 3; see troupe logs unborn; troupe start unborn'],
])('has no empty list of a server that was never heard of and is %s', async (state, why) => {
  if (state === 'failed') await d.cli('start', 'unborn');
  await d.until('unborn', state);
  const host = await rawHost(`${url}/mcp/unborn`);
  expect((await host.ask('tools/list')).error).toMatchObject({ code: -32010, message: why });
  expect(await d.request('troupe.list.unborn.tools')).toMatchObject({ code: 503, data: { message: why } });
  await host.close();
});

it('has no empty list of a server that is about to say what it has', async () => {
  await d.cli('start', 'mute');
  await d.until('mute', 'ready');
  const early = await d.request('troupe.list.mute.tools');
  expect(early).toMatchObject({ code: 503, error: expect.stringContaining('has not said which tools it has') });
  const [late] = await Promise.all([d.request('troupe.list.mute.tools'), writeFile(join(dir.path, 'said'), '')]);
  expect(late.data.tools).toMatchObject([{ name: 'echo' }]);
});

it('tells the bus and the command line why there is no list', async () => {
  const reply = await d.request('troupe.list.sulks.tools');
  expect([reply.code, reply.data]).toEqual([500, ERROR]);
  const listed = await d.cli('tools', 'sulks');
  expect(listed.exitCode).not.toBe(0);
  expect(listed.stderr).toContain('no lists today');
  expect(listed.stderr).not.toContain('sulks is ready');
  expect((await d.cli('tools')).stderr).toContain('no lists today');
});

it('says so where people look', async () => {
  const { state, trouble } = await d.server('sulks');
  expect([state, trouble]).toEqual(['ready', expect.stringContaining('no lists today')]);
  expect((await d.cli('ps')).stdout).toMatch(/sulks.*tools/);
  expect((await d.cli('status')).stdout).toContain('no lists today');
  expect((await d.server('echo')).trouble).toBeNull();
});

it('warns the hosts of many servers, asks again when somebody wants the list, and tells hosts when it is there', async () => {
  const [own, all] = await Promise.all([rawHost(`${url}/mcp/sulks`), rawHost(`${url}/mcp`)]);
  const { events } = await all.get();
  const heard = async (method: string) => {
    for (;;) {
      const { value } = await events.next();
      if (value.message.method === method) return value.message;
    }
  };
  await d.cli('restart', 'sulks');
  const { level, data } = (await heard('notifications/message')).params;
  expect([level, data]).toEqual(['warning', expect.stringContaining('the tools of sulks are not listed')]);
  expect((await own.ask('tools/list')).error).toEqual(ERROR);
  await writeFile(join(dir.path, 'well'), '');
  expect((await own.ask('tools/list')).result.tools).toMatchObject([{ name: 'echo' }]);
  await heard('notifications/tools/list_changed');
  expect((await d.server('sulks')).trouble).toBeNull();
  await Promise.all([own.close(), all.close()]);
});
