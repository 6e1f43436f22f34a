import { rename, rm } from 'node:fs/promises';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

test('a configuration that is deleted, even for a moment, stops nothing', async () => {
  await using d = await daemon({ servers: { echo: fixture('echo') } });
  const { pid } = await d.server('echo');
  await rm(d.config);
  await eventually(async () => expect(await d.log()).toContain('is gone; what runs goes on running'));
  expect((await d.status()).servers).toMatchObject([{ name: 'echo', state: 'ready', pid }]);
});

test('a configuration that is a named pipe is refused, at a reload and at a start', async () => {
  await using d = await daemon({ servers: { echo: fixture('echo') } });
  const { pid } = await d.server('echo');
  await execa('mkfifo', [`${d.config}.new`]);
  await rename(`${d.config}.new`, d.config);
  await eventually(async () => expect(await d.log()).toContain('this is a named pipe; name a file'));
  expect((await d.status()).servers).toMatchObject([{ name: 'echo', state: 'ready', pid }]);
  expect((await d.request('troupe.call.echo.echo', { message: 'hi' })).data.content[0].text).toBe('hi');

  const { exitCode, stderr } = await d.cli('up', '--instance', 'two');
  expect([exitCode, stderr]).toEqual([2, `troupe: ${d.config}:1:1: this is a named pipe; name a file`]);
});
