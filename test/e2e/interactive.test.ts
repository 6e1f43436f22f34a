// Attribution under load: fifty hosts of five principals call one stdio server that asks on behalf of each call, and says
// nowhere for which. Every question reaches the host that caused it, and every answer goes back to its own caller.

import { expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { type TaggedHost, taggedHost } from '../support/tagged-host.ts';

const PRINCIPALS = ['ann', 'ben', 'cat', 'dan', 'eve'];
const HOSTS = 50;
const CALLS = 1_000;
const TOKENS = Object.fromEntries(PRINCIPALS.map((name) => [name, `token-of-${name}-0123456789`]));
const HTTP = { http: { address: '127.0.0.1:0', tokens: TOKENS } };

it.each(['principal', 'all'] as const)(
  'right caller: 1,000 overlapping calls of 50 hosts of 5 principals at one asking server, shared by %s',
  async (share) => {
    await using d = await daemon({ servers: { asks: fixture('asks-tags', { share, timeoutMs: '2m' }) }, troupe: HTTP });
    const hosts = await hostsOf(d, HOSTS);
    try {
      const [first] = hosts as [TaggedHost];
      expect(await first.ask('alone')).toMatchObject({ said: `${first.name} answers ${first.name} alone` });
      const pids = new Set<number>();
      const wrong: object[] = [];
      await Promise.all(
        hosts.map((host) =>
          Promise.all(
            Array.from({ length: CALLS / HOSTS }, async (_, index) => {
              const tag = `${host.name} ${index}`;
              const answer = await host.ask(String(index), index % 5);
              pids.add(answer.pid);
              if (answer.tag !== tag || answer.said !== `${host.name} answers ${tag}`) wrong.push({ tag, answer });
            }),
          ),
        ),
      );
      expect(wrong).toEqual([]);
      for (const { name, asked, strange } of hosts) {
        expect(strange).toEqual([]);
        expect(new Set(asked).size).toBe(asked.length);
        expect(asked.filter((message) => !message.endsWith('alone'))).toHaveLength(CALLS / HOSTS);
        expect(asked.every((message) => message.startsWith(`${name} `))).toBe(true);
      }
      const { servers } = await d.status();
      expect(servers.filter(({ inFlight, queued }) => inFlight > 0 || queued > 0)).toEqual([]);
      // Each tenant has a pool of four, and no more; only the owner's own process has nothing to do.
      expect(pids.size).toBe(share === 'all' ? 4 : 4 * PRINCIPALS.length);
      expect(servers.every(({ name, tools }) => name.startsWith('asks') && tools === 3)).toBe(true);
    } finally {
      for (const host of hosts) host.close();
    }
  },
  240_000,
);

async function hostsOf(d: Daemon, count: number): Promise<TaggedHost[]> {
  const url = await d.http();
  const names = Array.from({ length: count }, (_, index) => PRINCIPALS[index % PRINCIPALS.length] as string);
  return Promise.all(names.map((who, index) => taggedHost(url, 'asks', `${who}-${index}`, tokenOf(who))));
}
const tokenOf = (who: string) => ({ token: TOKENS[who] as string });
