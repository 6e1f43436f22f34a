// A session that nobody uses comes to an end, one that is used does not, and its host is told to begin anew.

import { expect, it } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

it('is over after it was unused for as long as the configuration says, and not before', async () => {
  const http = { address: '127.0.0.1:0', sessionIdleMs: '3s' };
  await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { http } });
  const [left, used] = [await rawHost(`${await d.http()}/mcp`), await rawHost(`${await d.http()}/mcp`)];
  await eventually(async () => {
    expect((await used.ask('ping')).status).toBe(200);
    expect((await d.status()).sessions).toBe(1);
  }, 20_000);
  expect((await left.ask('ping')).status).toBe(404);
  expect((await used.ask('ping')).status).toBe(200);
  await Promise.all([left.close(), used.close()]);
});
