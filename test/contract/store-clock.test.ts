// The clock that only runs: whatever is done to the wall clock, however the machine is started anew, and whoever else reads
// it. The machine is played here but for the last test, which asks real processes.

import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Clock, type ClockSource, openClock } from '../../src/store/clock.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const root = fileURLToPath(new URL('../../', import.meta.url));

/** A machine that runs, is set, sleeps and is started anew as the test says. */
function machine() {
  let boots = 1;
  let uptime = 5_000.25;
  let wall = Date.UTC(2026, 0, 1);
  return {
    source: (): ClockSource => ({ wall: () => wall, uptime: () => uptime, boot: `boot ${boots}` }),
    run(ms: number) {
      uptime += ms;
      wall += ms;
    },
    setWall(ms: number) {
      wall += ms;
    },
    restart(offMs: number) {
      boots += 1;
      uptime = 900.5;
      wall += offMs;
    },
  };
}

async function stage() {
  const dir = await scratch();
  const store = await openStore(dir.path);
  const clocks: Clock[] = [];
  return {
    ...{ path: dir.path, store },
    async open(source: ClockSource, from: Store = store): Promise<Clock> {
      const clock = await openClock(from, source);
      clocks.push(clock);
      return clock;
    },
    anchor: () => JSON.parse(store.get<{ value: string }>('getMeta', ['clock'])?.value ?? '{}'),
    async [Symbol.asyncDispose]() {
      for (const clock of clocks) clock.close();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** A minute later by the timers, which is when the moment on the disk is replaced. */
async function refreshed(s: Awaited<ReturnType<typeof stage>>, uptime: number): Promise<void> {
  vi.advanceTimersByTime(60_000);
  await eventually(() => expect(s.anchor().uptime).toBe(uptime), 20_000);
}

afterEach(() => void vi.useRealTimers());

describe('while the machine runs', () => {
  it.each([HOUR, -HOUR, YEAR, -YEAR])('does not notice that the wall clock is set by %d ms', async (jump) => {
    await using s = await stage();
    const m = machine();
    const clock = await s.open(m.source());
    const before = clock.now();
    m.setWall(jump);
    expect(clock.now()).toBe(before);
    m.run(1_234);
    expect(clock.now()).toBe(before + 1_234);
    expect((await s.open(m.source())).now(), 'a daemon that starts now').toBe(before + 1_234);
  });

  it('ends a life of 30 days after 30 days, and no tick earlier', async () => {
    await using s = await stage();
    const m = machine();
    const clock = await s.open(m.source());
    const end = clock.now() + 30 * DAY;
    for (let day = 0; day < 30; day++) {
      m.setWall(day % 2 === 0 ? YEAR : -YEAR - HOUR);
      m.run(DAY - (day === 29 ? 1 : 0));
    }
    expect(clock.now()).toBe(end - 1);
    m.run(1);
    expect((await s.open(m.source())).now()).toBe(end);
  });

  it('gives whole ticks, and never fewer than before', async () => {
    await using s = await stage();
    const m = machine();
    const clock = await s.open(m.source());
    const ticks = [0, 0.4, 0.4, 0.4, 3, -2, 0, 5].map((ms) => {
      m.run(ms);
      return clock.now();
    });
    expect(ticks.every(Number.isInteger)).toBe(true);
    expect(ticks).toEqual(ticks.toSorted((one, other) => one - other));
    expect((ticks.at(-1) ?? 0) - (ticks[0] ?? 0)).toBe(7);
  });
});

describe('when the machine is started anew', () => {
  it('counts the time that it was off, since the moment that was last kept', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await using s = await stage();
    const m = machine();
    const clock = await s.open(m.source());
    const before = clock.now();
    m.run(10 * HOUR);
    m.setWall(-YEAR);
    await refreshed(s, clock.uptime());
    m.restart(5 * 60_000);
    expect((await s.open(m.source())).now()).toBe(before + 10 * HOUR + 5 * 60_000);
  });

  it('stands still over a wall clock that was set back, and takes one far ahead for a day', async () => {
    await using s = await stage();
    const m = machine();
    const first = (await s.open(m.source())).now();
    m.restart(-YEAR);
    const second = (await s.open(m.source())).now();
    m.restart(2 * YEAR);
    expect([second - first, (await s.open(m.source())).now() - second]).toEqual([0, DAY]);
  });

  it('notices it where a machine cannot name its boots', async () => {
    await using s = await stage();
    const m = machine();
    const unnamed = (): ClockSource => ({ ...m.source(), boot: 'unknown' });
    const before = (await s.open(unnamed())).now();
    m.restart(HOUR);
    expect((await s.open(unnamed())).now()).toBe(before + HOUR);
  });

  it('counts all the time there was, in whatever order machines run, are set and are started anew', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await using s = await stage();
    const ms = fc.integer({ min: 60_000, max: DAY });
    const step = fc.oneof(
      fc.record({ type: fc.constant('run' as const), ms }),
      fc.record({ type: fc.constant('set' as const), ms: fc.integer({ min: -YEAR, max: YEAR }) }),
      fc.record({ type: fc.constant('restart' as const), ms }),
    );
    const check = async (steps: { type: 'run' | 'set' | 'restart'; ms: number }[]) => {
      await s.store.commit('setMeta', ['clock', 'not a clock']); // somebody else's words are replaced
      const m = machine();
      let clock = await s.open(m.source());
      const begun = clock.now();
      let passed = 0;
      for (const { type, ms } of steps) {
        if (type !== 'set') passed += ms;
        if (type === 'run') m.run(ms);
        else if (type === 'set') m.setWall(ms);
        else {
          m.run(60_000);
          passed += 60_000;
          await refreshed(s, clock.uptime());
          clock.close();
          m.restart(ms);
          clock = await s.open(m.source());
        }
        expect(clock.now() - begun).toBe(passed);
      }
      clock.close();
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 8 }), check), { numRuns: 100 });
  }, 120_000);
});

describe('for several daemons', () => {
  it('is the same when all start at once, on a new directory and after a restart of the machine', async () => {
    await using s = await stage();
    const m = machine();
    const stores = [s.store, ...(await Promise.all([1, 2, 3].map(() => openStore(s.path))))];
    try {
      for (let round = 0; round < 10; round++) {
        // Each looks at a wall clock of its own mind: only who is first may be believed.
        const sources = stores.map((_, i) => ({ ...m.source(), wall: () => m.source().wall() + i * 777 }));
        const clocks = await Promise.all(sources.map((source, i) => s.open(source, stores[i])));
        m.run(1_000);
        expect(new Set(clocks.map((clock) => clock.now())).size, `round ${round}`).toBe(1);
        m.restart(HOUR);
      }
    } finally {
      await Promise.all(stores.slice(1).map((store) => store.close()));
    }
  });

  it('is written once a minute, by whoever comes first', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await using s = await stage();
    const m = machine();
    const [one] = await Promise.all([s.open(m.source()), s.open(m.source())]);
    const kept = s.anchor();
    m.run(59_000);
    vi.advanceTimersByTime(60_000);
    await s.store.flush();
    expect(s.anchor()).toEqual(kept);
    m.run(1_000);
    await refreshed(s, one.uptime());
    expect(s.anchor().tick - s.anchor().uptime).toBe(kept.tick - kept.uptime);
  });

  it('is the machine that all its processes know, to within 20 ms', async () => {
    await using s = await stage();
    const readings = await Promise.all(
      [1, 2, 3].map(() => execa('node', ['--input-type=module', '-e', READS, s.path], { cwd: root })),
    );
    const found = readings.map(({ stdout }) => JSON.parse(stdout));
    const spread = (values: number[]) => Math.max(...values) - Math.min(...values);
    expect(spread(found.map((each) => each.uptimeAhead))).toBeLessThan(20);
    expect(spread(found.map((each) => each.nowAhead))).toBeLessThan(20);
    expect(new Set(found.map((each) => each.boot)).size).toBe(1);
    expect(found.every((each) => each.isRunning && each.finest < 5)).toBe(true);
  }, 30_000);
});

/** How far its clocks are ahead of the one that the kernel gives to all, by the quickest of many looks. */
const READS = `
  import { openClock } from './dist/src/store/clock.js';
  import { openStore } from './dist/src/store/store.js';
  const store = await openStore(process.argv[1]);
  const clock = await openClock(store);
  const kernel = () => Number(process.hrtime.bigint()) / 1e6;
  let best = { tookMs: Infinity };
  const uptimes = [];
  for (let i = 0; i < 20_000; i++) {
    const [before, uptime, now, after] = [kernel(), clock.uptime(), clock.now(), kernel()];
    uptimes.push(uptime);
    if (after - before < best.tookMs) best = { tookMs: after - before, uptimeAhead: uptime - before, nowAhead: now - before };
  }
  const steps = uptimes.slice(1).map((each, i) => each - uptimes[i]);
  const isRunning = steps.every((step) => step >= 0) && uptimes.at(-1) > uptimes[0];
  const finest = Math.min(...steps.filter((step) => step > 0));
  console.log(JSON.stringify({ ...best, isRunning, finest, boot: clock.boot }));
  clock.close();
  await store.close();
`;
