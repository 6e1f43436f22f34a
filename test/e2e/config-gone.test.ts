import { rm } from 'node:fs/promises';
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
