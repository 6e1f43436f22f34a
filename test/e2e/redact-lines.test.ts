import { expect, test } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

test('a mask that matches to the end of the line hides the text and leaves the line a line', async () => {
  const troupe = { plugins: { redact: { patterns: ['hidden.*', 'token="[^"]*"'] } } };
  await using d = await daemon({ servers: { echo: fixture('echo') }, troupe });
  await d.request('troupe.call.echo.hidden-and-more', {});
  await d.request('troupe.call.echo.token="abc"', {}).catch(() => {}); // a name no subject can have: refused, and logged
  await eventually(async () => expect(await d.log()).toContain('[masked]'));
  for (const line of (await d.log()).trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  expect(await d.log()).not.toContain('hidden-and-more');
});
