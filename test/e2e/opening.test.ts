import { expect, it } from 'vitest';
import { daemon } from '../support/daemon.ts';

it('calls made while a server opens wait for it, and the daemon goes on answering', async () => {
  const slow = {
    command: 'sh',
    args: ['-c', `sleep 1; exec ${process.execPath} test/fixtures/echo.mjs`],
    cwd: process.cwd(),
  };
  await using d = await daemon({ servers: { slow }, settle: false });
  expect((await d.server('slow')).state).toBe('opening');
  const calls = Array.from({ length: 20 }, (_, i) => d.request('troupe.call.slow.echo', { message: `m${i}` }));
  const replies = await Promise.all(calls);
  expect(replies.map(({ data }) => data.content[0].text)).toEqual(Array.from({ length: 20 }, (_, i) => `m${i}`));
});
