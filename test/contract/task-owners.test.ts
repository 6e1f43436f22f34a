// Who lives and who may be taken for dead: by the lock, the boot and the beat, and never by who was away himself.
// Time is played here; test/contract/task-owners-stopped.test.ts stops a real process.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../src/store/clock.ts';
import { BEAT_MS, createOwners, LEASE_MS, type OwnersOptions } from '../../src/tasks/owners.ts';
import { realWorld } from '../../src/world/world.ts';
import { scratch } from '../support/scratch.ts';
import { taskStore } from '../support/task-rows.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

const ALWAYS = Number.MAX_SAFE_INTEGER;

/** One daemon named `here` in a world whose time and whose locks the test holds. */
async function stage(options: Partial<OwnersOptions> = {}) {
  const dir = await scratch();
  const store = await taskStore(dir.path);
  let uptime = 1_000_000;
  const clock: Clock = { now: () => uptime, uptime: () => uptime + 0.5, boot: 'this boot', close() {} };
  const held = new Set(['here', 'there', 'elsewhere']);
  const looked: string[] = [];
  const oversleeps: number[] = [];
  const troubles: unknown[] = [];
  const owners = createOwners({
    ...{ world: realWorld, store, clock, daemon: 'here', isNeeded: () => true },
    isAlive: (daemon) => looked.push(daemon) > 0 && held.has(daemon),
    onOverslept: () => oversleeps.push(uptime),
    onTrouble: (error) => troubles.push(error),
    ...options,
  });
  return {
    ...{ store, owners, held, looked, oversleeps, troubles },
    now: () => uptime,
    /** A life of another daemon whose last beat is so long ago. */
    other: (id: string, daemon: string, agoMs: number, boot = 'this boot') =>
      store.commit('beat', [id, daemon, boot, uptime - agoMs]),
    beatOf: (id: string) => store.lives().find((life) => life.id === id)?.beat,
    /** Time passes, and its beats are on the disk. */
    async run(ms: number) {
      for (let left = ms; left > 0; left -= BEAT_MS) {
        uptime += Math.min(left, BEAT_MS);
        vi.advanceTimersByTime(BEAT_MS);
        await store.flush();
        await new Promise(setImmediate); // who waited for the same batch has heard of it too
      }
    },
    /** Time passes in which nothing of this process runs. */
    sleep(ms: number) {
      uptime += ms;
    },
    async [Symbol.asyncDispose]() {
      await owners.close();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

describe('a life', () => {
  it('has an id of 128 random bits, is known once it has started, and forgets its earlier ones', async () => {
    await using s = await stage();
    await s.other('my last life', 'here', 0);
    await s.other('a neighbour', 'there', 0);
    await s.owners.start();
    expect(s.owners.id).toMatch(/^[0-9a-f]{32}$/);
    expect(
      s.store
        .lives()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([s.owners.id, 'a neighbour'].sort());
    await s.owners.close();
    expect(s.store.lives().map(({ id }) => id)).toEqual(['a neighbour']);
    s.sleep(60_000);
    s.owners.beat();
    await s.run(2_000);
    expect(s.store.lives(), 'no beat brings it back').toHaveLength(1);
  });

  it('beats while somebody has an unfinished task, and writes nothing else', async () => {
    let isNeeded = false;
    await using s = await stage({ isNeeded: () => isNeeded });
    await s.owners.start();
    const first = s.beatOf(s.owners.id);
    await s.run(10_000);
    expect(s.beatOf(s.owners.id)).toBe(first);
    isNeeded = true;
    await s.run(10_000);
    expect(s.now() - (s.beatOf(s.owners.id) ?? 0)).toBeLessThanOrEqual(BEAT_MS);
    expect(s.oversleeps, 'a rest is no oversleep').toEqual([]);
  });

  it('is fresh on the disk before the first task that is written after its beat', async () => {
    let isNeeded = false;
    await using s = await stage({ isNeeded: () => isNeeded });
    await s.owners.start();
    await s.run(60_000);
    s.owners.beat();
    isNeeded = await s.store.add({ id: 't', owner: s.owners.id });
    expect(s.now() - (s.beatOf(s.owners.id) ?? 0)).toBeLessThanOrEqual(BEAT_MS);
  });

  it('says once that it was silent too long, when it is back', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.run(5_000);
    s.sleep(LEASE_MS - BEAT_MS - 1);
    await s.run(BEAT_MS);
    expect(s.oversleeps).toEqual([]);
    s.sleep(LEASE_MS + 1);
    await s.run(5_000);
    expect(s.oversleeps).toHaveLength(1);
  });

  it('starts on a store that refuses, and reports it', async () => {
    await using s = await stage();
    await s.store.close();
    await s.owners.start();
    expect(s.troubles).toMatchObject([{ code: 'unavailable' }]);
  });

  it('goes on when the question whether it is needed fails', async () => {
    let fails = true;
    const isNeeded = () => {
      if (fails) throw new Error('the disk is gone');
      return true;
    };
    await using s = await stage({ isNeeded });
    await s.owners.start();
    await s.run(1_000);
    expect(s.troubles.length).toBeGreaterThan(0);
    fails = false;
    await s.run(1_000);
    expect(s.now() - (s.beatOf(s.owners.id) ?? 0)).toBeLessThanOrEqual(BEAT_MS);
  });
});

describe('dead is', () => {
  it('nobody, who is not known, who was of another boot or of our own name, and whose lock is free', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.other('of another boot', 'there', 0, 'that boot');
    await s.other('of our name', 'here', 0);
    await s.other('unlocked', 'gone', 1_500);
    const owners = ['', 'unknown', 'of another boot', 'of our name', 'unlocked'];
    expect(s.owners.dead([...owners, s.owners.id])).toEqual(owners.map((owner) => ({ owner, minBeat: ALWAYS })));
  });

  it('not who has just beaten, whose lock is not even looked at', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.other('fresh', 'gone', 900);
    expect([s.owners.dead(['fresh', s.owners.id]), s.looked]).toEqual([[], []]);
  });

  it('who has been silent for a lease though its lock is held, for a life that was not', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.other('silent', 'there', 0);
    await s.run(LEASE_MS - BEAT_MS);
    expect(s.owners.dead(['silent'])).toEqual([]);
    await s.run(BEAT_MS);
    expect(s.owners.dead(['silent'])).toEqual([{ owner: 'silent', minBeat: s.now() - LEASE_MS }]);
  });

  it('not who was silent while we were away too, until it has had time to come back', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.run(10_000);
    await s.other('asleep', 'there', 0);
    s.sleep(8 * 3_600_000); // the lid was closed
    expect(s.owners.dead(['asleep']), 'before our first beat').toEqual([]);
    await s.run(BEAT_MS);
    expect(s.owners.dead(['asleep']), 'after our first beat').toEqual([]);
    await s.run(LEASE_MS);
    expect(s.owners.dead(['asleep']).map(({ owner }) => owner)).toEqual(['asleep']);
    await s.other('asleep', 'there', 0);
    expect(s.owners.dead(['asleep']), 'it is back').toEqual([]);
  });

  it('asked once of each lock in a look, however many lives there are', async () => {
    await using s = await stage();
    await s.owners.start();
    const owners = Array.from({ length: 10 }, (_, i) => `life ${i}`);
    for (const [i, owner] of owners.entries()) await s.other(owner, i % 2 ? 'there' : 'elsewhere', 1_500);
    expect(s.owners.dead(owners)).toEqual([]);
    expect(s.looked.sort()).toEqual(['elsewhere', 'there']);
  });
});

describe('adopting', () => {
  it('takes what the dead have left, for servers that there are, and nothing of the living', async () => {
    await using s = await stage();
    await s.owners.start();
    await s.other('living', 'there', 0);
    await s.other('killed', 'gone', 1_500);
    await s.store.add({ id: 'theirs', owner: 'living' });
    expect(await s.owners.adopt(['files'])).toBe(false);
    await s.store.add({ id: 'left', owner: 'killed' });
    await s.store.add({ id: 'nobody’s', owner: '' });
    await s.store.add({ id: 'no server', owner: 'killed', server: 'removed' });
    await s.store.add({ id: 'sent', owner: 'killed', server: 'removed', phase: 'dispatching' });
    s.sleep(BEAT_MS);
    expect(await s.owners.adopt(['files'])).toBe(true);
    const owners = Object.fromEntries(
      ['theirs', 'left', 'nobody’s', 'no server', 'sent'].map((id) => [id, s.store.row(id)]),
    );
    expect(owners).toMatchObject({
      theirs: { owner: 'living', epoch: 1 },
      left: { owner: s.owners.id, epoch: 2 },
      'nobody’s': { owner: s.owners.id, epoch: 2 },
      'no server': { owner: 'killed', epoch: 1 },
      sent: { owner: s.owners.id, epoch: 2 },
    });
    expect(s.beatOf(s.owners.id), 'they are not nobody’s again').toBe(s.now());
  });
});
