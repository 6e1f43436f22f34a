// A server that asks faster than it reads: the answers would fill our memory, so it is ended with a sentence.

import { expect, test } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { whileNeighbourWorks } from '../support/neighbour.ts';

test('a server that asks without end and reads no answer is ended, and its neighbour does not notice', async () => {
  await using d = await daemon({ servers: { echo: fixture('echo'), greedy: fixture('asks-and-never-reads') } });
  await whileNeighbourWorks(d, async () => {
    const reply = await d.request('troupe.call.greedy.flood', {}, { timeout: 50_000 });
    expect(reply).toMatchObject({ code: 502, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
    expect(reply.error).toContain('it asks, but does not read the answers');
    expect((await d.until('greedy', 'ready')).restarts).toBe(1);
  });
});
