// Servers that say too much or nonsense: a frame without end, floods of notifications and of stderr, garbage, a hundred
// thousand tools. Each time: what the caller gets, what state is shown, and that a healthy neighbour’s calls go on.

import { existsSync, readFileSync } from 'node:fs';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { whileNeighbourWorks } from '../support/neighbour.ts';

const OFF = { enabled: false, stdinMs: 200, termMs: 300 };
const LOOP = { intensity: 1, periodMs: 60_000, backoffMs: [50] };
const MB = 1024 * 1024;
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      echo: fixture('echo'),
      endless: fixture('floods-stdout', OFF),
      chatty: fixture('floods-notifications', OFF),
      noisy: fixture('floods-stderr', OFF),
      garbled: fixture('garbage', OFF),
      looping: fixture('cursor-loop', OFF),
      paged: fixture('many-tools', OFF, { PAGED: '1' }),
      whole: fixture('many-tools', { ...OFF, maxFrameBytes: '32MB' }),
      toobig: fixture('many-tools', { ...OFF, maxFrameBytes: '1MB', restart: LOOP }),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const during = <Value>(work: () => Promise<Value>) => whileNeighbourWorks(d, work);
const start = (name: string) => d.cli('start', name);
const echo = async (server: string, message: string) =>
  (await d.request(`troupe.call.${server}.echo`, { message })).data?.content?.[0]?.text;

test('a frame without end is cut off at the cap: its caller hears, the server starts again, memory hardly grows', async () => {
  await during(async () => {
    await start('endless');
    const before = await anonymousBytes(d.pid);
    let peak = before;
    let isDone = false;
    const watch = (async () => {
      while (!isDone) peak = Math.max(peak, await anonymousBytes(d.pid));
    })();
    for (let flood = 1; flood <= 2; flood++) {
      const reply = await d.request('troupe.call.endless.flood');
      const lost = { data: { troupe: { code: 'lost', delivery: 'outcome unknown' } } };
      expect(reply).toMatchObject({ code: 502, data: lost });
      expect(reply.error).toContain('it sent a frame of more than 16777216 bytes (x-troupe.maxFrameBytes)');
      expect((await d.until('endless', 'ready')).restarts).toBe(flood);
      isDone = true; // one flood is measured; what several leave for the collector depends on when it comes
      await watch;
    }
    expect(peak - before).toBeLessThan(64 * MB);
    expect(await echo('endless', 'calm again')).toBe('calm again');
  });
});

test('a flood of notifications reaches nobody faster than they can read, and the call among them is answered', async () => {
  let events = 0;
  const nc = await d.nats();
  const logs = nc.subscribe('troupe.ev.chatty.log.info', { callback: () => events++ });
  await during(async () => {
    await start('chatty');
    const reply = await d.request('troupe.call.chatty.flood', { count: 20_000 }, { timeout: 30_000 });
    expect(reply.data.content[0].text).toBe('sent 20000');
    expect(await d.server('chatty')).toMatchObject({ state: 'ready', restarts: 0 });
    expect(await echo('chatty', 'done')).toBe('done');
  });
  logs.unsubscribe();
  expect(events).toBeGreaterThan(0);
  expect(events).toBeLessThan(5_000);
});

test('a flood of stderr is logged at a bounded pace and stops nothing', async () => {
  await during(async () => {
    await start('noisy');
    const wrote = await d.request('troupe.call.noisy.flood', { bytes: 32 * MB, newlines: false }, { timeout: 30_000 });
    expect(wrote.data.content[0].text).toBe(`wrote ${32 * MB}`);
    const before = readFileSync(`${d.state}/logs/troupe.log`).length;
    expect((await d.request('troupe.call.noisy.flood')).data.content[0].text).toBe('flooding');
    for (let at = 0; at < 50; at++) expect(await echo('noisy', `during ${at}`)).toBe(`during ${at}`);
    expect(await d.server('noisy')).toMatchObject({ state: 'ready', restarts: 0 });
    await eventually(async () => expect(await d.log()).toMatch(/lines of stderr were left out, they came too fast/));
    await d.cli('stop', 'noisy');
    expect((await d.log()).length - before).toBeLessThan(2 * MB);
  });
});

test('garbage between the frames is dropped and shown in the log; what is a proper answer arrives', async () => {
  await during(async () => {
    await start('garbled');
    for (let at = 0; at < 20; at++) expect(await echo('garbled', `${at}`)).toBe(`${at}`);
    const short = { headers: { 'Troupe-Timeout': '400' } };
    const [both, bytes] = await Promise.all([
      d.request('troupe.call.garbled.both', '', short),
      d.request('troupe.call.garbled.bytes', '', short),
    ]);
    for (const reply of [both, bytes])
      expect(reply).toMatchObject({ code: 408, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
    expect(await d.server('garbled')).toMatchObject({ state: 'ready', restarts: 0 });
    await eventually(async () => {
      const log = await d.log();
      expect(log).toContain('"excerpt":"this is not JSON"');
      expect(log).toContain('dropped an answer to nobody');
    });
  });
});

test('a list of tools that never ends is cut at the first cursor that comes again', async () => {
  await during(async () => {
    await start('looping');
    await eventually(async () => (await d.server('looping')).tools > 0);
    expect(await d.server('looping')).toMatchObject({ state: 'ready', restarts: 0, tools: 2 });
    expect(await echo('looping', 'hi')).toBe('hi');
    await eventually(async () => expect(await d.log()).toContain('tools/list gives the cursor again again'));
  });
});

test.each(['paged', 'whole'])(
  'a hundred thousand tools, %s, are catalogued and the last of them answers',
  async (name) => {
    await during(async () => {
      await start(name);
      await eventually(async () => (await d.server(name)).tools === 100_000, 30_000);
      const reply = await d.request(`troupe.call.${name}.tool-99998`);
      expect(reply.data.content[0].text).toBe('tool-99998');
      expect((await d.request(`troupe.call.${name}.tool-99999`)).code).toBe(404);
      let [count, cursor]: [number, string | undefined] = [0, undefined];
      do {
        const page: any = (await d.request(`troupe.list.${name}.tools`, cursor ? { cursor } : '')).data;
        count += page.tools.length;
        cursor = page.nextCursor;
      } while (cursor);
      expect(count).toBe(100_000);
      await d.cli('stop', name);
    });
  },
);

test('a list of tools in one frame over the cap ends in failed, and says which setting would let it pass', async () => {
  await during(async () => {
    await start('toobig');
    const { lastError, tools } = await d.until('toobig', 'failed');
    expect(lastError).toBe('it sent a frame of more than 1048576 bytes (x-troupe.maxFrameBytes)');
    expect(tools).toBe(0);
    const reply = await d.request('troupe.call.toobig.echo', { message: 'hi' });
    expect(reply).toMatchObject({ code: 503, data: { data: { troupe: { delivery: 'not sent', state: 'failed' } } } });
  });
});

/** Anonymous memory, where the system says so: the rest is code and files that can be dropped. */
async function anonymousBytes(pid: number): Promise<number> {
  const file = `/proc/${pid}/status`;
  const [, kilobytes] = existsSync(file) ? (/^RssAnon:\s*(\d+) kB/m.exec(readFileSync(file, 'utf8')) ?? []) : [];
  if (kilobytes) return new Promise((resolve) => setTimeout(resolve, 10, Number(kilobytes) * 1024));
  const { stdout } = await execa('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) * 1024;
}
