// The owners of tasks. An owner is one life of a daemon, from start to stop: it says by a beat on the disk that it lives, and
// judges by their beats which other owners are dead. Only an owner that has beaten without a break may hold silence against
// another: a machine that slept, or a disk that stood, was so for all. An owner that is judged wrongly loses its tasks but does
// no harm, because each of its writes names an epoch.

import type { Clock } from '../store/clock.ts';
import type { LifeRow } from '../store/rows.ts';
import type { World } from '../world/world.ts';
import type { TaskStore } from './rows.ts';

export type OwnersOptions = {
  readonly world: World;
  readonly store: TaskStore;
  readonly clock: Clock;
  /** The name of the lock that this daemon holds. */
  readonly daemon: string;
  /** Whether a daemon's lock is held; costs an attempt to take it. */
  readonly isAlive: (daemon: string) => boolean;
  /** Whether anybody on this state directory has an unfinished task; else nothing is written. */
  readonly isNeeded: () => boolean;
  /** This owner was silent for so long that others may have taken its tasks. */
  readonly onOverslept: () => void;
  readonly onTrouble: (error: unknown) => void;
};

/** An owner that is dead; its tasks may be adopted unless it has beaten after that. */
export type Dead = { readonly owner: string; readonly minBeat: number };

export type Owners = ReturnType<typeof createOwners>;

export const BEAT_MS = 500;
/** An owner that was silent for so long may lose its tasks; with the next look of a neighbour that is within 5 s. */
export const LEASE_MS = 3_500;
/** An owner that has beaten so lately is alive, without a look at its lock. */
const FRESH_MS = 1_000;
/** After a longer break nobody is judged by silence for a while. A shorter one takes nobody else to the end of its lease. */
const BREAK_MS = 2_500;
/** No beat is as late: none keeps that owner alive. */
const ANY_BEAT = Number.MAX_SAFE_INTEGER;

export function createOwners(options: OwnersOptions) {
  const { world, store, clock, daemon, onTrouble } = options;
  const id = world.random(16).toString('hex');
  const pulse = createPulse(id, options);
  const dead = (owners: readonly string[]): Dead[] => judge(owners, id, pulse.isSteady, options);

  async function take({ owner, minBeat }: Dead, servers: readonly string[]): Promise<boolean> {
    try {
      return await store.commit('adoptTasks', [id, owner, owner, clock.boot, minBeat, JSON.stringify(servers)]);
    } catch (error) {
      onTrouble(error);
      return false; // the next look finds them again
    }
  }

  return {
    id,
    dead,
    beat: pulse.beat,
    isSurelyAlive: pulse.isSurelyAlive,
    /** Resolves when our earlier lives are forgotten and this one is known; a full disk keeps nobody from starting. */
    async start(): Promise<void> {
      await Promise.all([store.commit('forgetLives', [daemon, id]), pulse.start()]).catch(onTrouble);
    },
    /** Takes over what dead owners have left for these servers, and says whether that was anything. */
    async adopt(servers: readonly string[]): Promise<boolean> {
      const owners = store.all<{ owner: string }>('taskOwners').map(({ owner }) => owner);
      const found = dead(owners);
      if (found.length > 0) pulse.beat(); // or they would be the tasks of nobody again
      const taken = found.map((each) => take(each, servers));
      return (await Promise.all(taken)).includes(true);
    },
    /** What was ours is free at once. */
    async close(): Promise<void> {
      await pulse.stop();
      await store.commit('forgetLife', [id]).catch(onTrouble);
    },
  };
}

/** The beats of this owner. */
function createPulse(id: string, { world, store, clock, daemon, isNeeded, onOverslept, onTrouble }: OwnersOptions) {
  let stopBeating = (): void => {};
  let isClosed = false;
  let beatenAt = Number.NEGATIVE_INFINITY; // the last one that is on the disk
  let steadySince = Number.POSITIVE_INFINITY; // since when none was missed
  let underWay: Promise<void> | undefined;

  function record(): Promise<void> {
    underWay ??= commitBeat().finally(() => {
      underWay = undefined;
    });
    return underWay;
  }

  async function commitBeat(): Promise<void> {
    const at = Math.floor(clock.uptime());
    await store.commit('beat', [id, daemon, clock.boot, at], 'first'); // an owner that is busy lives
    const silentMs = at - beatenAt;
    beatenAt = at;
    if (silentMs > BREAK_MS) steadySince = at;
    if (silentMs > LEASE_MS && silentMs < Number.POSITIVE_INFINITY) onOverslept();
  }

  function tick(): void {
    try {
      if (isNeeded()) record().catch(onTrouble);
      else beatenAt = Number.NEGATIVE_INFINITY; // an owner that has nothing to lose is not late
    } catch (error) {
      onTrouble(error);
    }
  }

  const isSurelyAlive = (): boolean => clock.uptime() - beatenAt <= BREAK_MS;

  return {
    start(): Promise<void> {
      stopBeating = world.every(BEAT_MS, tick);
      return record();
    },
    /** Call it before a task becomes ours: what is written after it is on the disk no earlier than a fresh beat. */
    beat(): void {
      if (!isClosed && clock.uptime() - beatenAt >= BEAT_MS) record().catch(onTrouble);
    },
    /** Nobody can have taken us for dead by now, and our tasks. */
    isSurelyAlive,
    isSteady: (): boolean => isSurelyAlive() && clock.uptime() - steadySince >= LEASE_MS,
    async stop(): Promise<void> {
      isClosed = true;
      stopBeating();
      await underWay?.catch(() => {}); // a beat after it would make us live again
    },
  };
}

/** Which of these owners of unfinished tasks are dead. */
function judge(
  owners: readonly string[],
  id: string,
  isSteady: () => boolean,
  { store, clock, daemon, isAlive }: OwnersOptions,
): Dead[] {
  const others = owners.filter((owner) => owner !== id);
  if (others.length === 0) return [];
  const now = Math.floor(clock.uptime());
  const lives = new Map(store.all<LifeRow>('lives').map((life) => [life.id, life]));
  const locks = new Map<string, boolean>();

  const holdsLock = (name: string): boolean => {
    const holds = locks.get(name) ?? isAlive(name);
    locks.set(name, holds);
    return holds;
  };
  const judged = (owner: string): Dead | undefined => {
    const life = lives.get(owner);
    // Our own name is held by this life, so any other of that name is over.
    if (!life || life.boot !== clock.boot || life.daemon === daemon) return { owner, minBeat: ANY_BEAT };
    if (Math.abs(now - life.beat) < FRESH_MS) return undefined;
    if (!holdsLock(life.daemon)) return { owner, minBeat: ANY_BEAT };
    return now - life.beat >= LEASE_MS && isSteady() ? { owner, minBeat: now - LEASE_MS } : undefined;
  };
  return others.map(judged).filter((each) => each !== undefined);
}
