// A server that answers the question for its tools with an error: whoever asks for them hears that error, at once and at
// every door, the other servers are shown nevertheless, and the next question is answered as soon as the server can.

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
  d = await daemon({ servers: { echo: fixture('echo'), sulks }, troupe: { http: { address: '127.0.0.1:0' } } });
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
