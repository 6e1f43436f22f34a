// A clock that only runs forward, the same for all daemons on a state directory: setting the wall clock does not move it.
// It counts the time since the machine was started, sleep included; only across a restart is the wall clock believed.

import { uptime as machineUptime } from 'node:os';
import { realWorld, type World } from '../world/world.ts';
import type { Reads, Writes } from './port.ts';
import { bootId } from './process-identity.ts';

export type Clock = {
  /** Ticks: whole milliseconds, never fewer than before. */
  now(): number;
  /** Milliseconds since this machine was started. */
  uptime(): number;
  readonly boot: string;
  close(): void;
};

export type ClockSource = { wall(): number; uptime(): number; readonly boot: string };

/** One moment by all three clocks, as it stands in the row `clock` of the table meta. */
type Anchor = { readonly boot: string; readonly uptime: number; readonly wall: number; readonly tick: number };

/** How old the row may become: what it lacks at a restart is taken for time in which the machine was off. */
const REFRESH_MS = 60_000;
/** A machine that was off for longer, or wakes with a wrong clock, counts as off for a day: tasks rather expire too late. */
const LONGEST_OFF_MS = 86_400_000;
/** Another program may hold the database: that keeps no daemon from starting. */
const PATIENCE_MS = 1_000;
/** The uptimes that two processes read at one moment may differ by so much. */
const SLACK_MS = 1_000;

export async function openClock(store: Reads & Writes, source?: ClockSource, world = realWorld): Promise<Clock> {
  const { boot, uptime, wall } = source ?? (await machine(world));
  let offset = 0;
  let last = 0;

  /** Agrees with all other daemons by compare-and-set on the row; while the disk refuses, with the row as it was last read. */
  async function synchronize(): Promise<void> {
    for (;;) {
      const text = store.get<{ value: string }>('getMeta', ['clock'])?.value;
      const anchor = anchorIn(text);
      const moment = { boot, uptime: uptime(), wall: wall() };
      const isValid = anchor !== undefined && isSameBoot(anchor, moment);
      const tick = tickAt(anchor, moment);
      offset = tick - moment.uptime;
      if (isValid && moment.uptime - anchor.uptime < REFRESH_MS) return;
      if (await isSet({ ...moment, tick }, text ?? '')) return;
    }
  }

  const isSet = (anchor: Anchor, before: string): Promise<boolean> =>
    store.commit('setClock', [JSON.stringify(anchor), before]).catch(() => true); // the next refresh tries again

  let stopWaiting = (): void => {};
  const patience = new Promise<void>((resolve) => {
    stopWaiting = world.after(PATIENCE_MS, resolve);
  });
  await Promise.race([synchronize(), patience]).finally(stopWaiting);
  const close = world.every(REFRESH_MS, () => {
    synchronize().catch(() => {}); // the store reports its own trouble
  });

  return {
    now() {
      last = Math.max(last, Math.floor(offset + uptime()));
      return last;
    },
    uptime,
    boot,
    close,
  };
}

function tickAt(anchor: Anchor | undefined, moment: Omit<Anchor, 'tick'>): number {
  if (anchor === undefined) return moment.wall;
  if (isSameBoot(anchor, moment)) return anchor.tick + moment.uptime - anchor.uptime;
  return anchor.tick + Math.min(Math.max(moment.wall - anchor.wall, 0), LONGEST_OFF_MS);
}

/** Where a machine cannot name its boot, it is another one if it has been up for a shorter time. */
const isSameBoot = (anchor: Anchor, { boot, uptime }: Omit<Anchor, 'tick'>): boolean =>
  anchor.boot === boot && uptime > anchor.uptime - SLACK_MS;

function anchorIn(text: string | undefined): Anchor | undefined {
  try {
    const { boot, uptime, wall, tick } = JSON.parse(text ?? '{}');
    return [uptime, wall, tick].every(Number.isFinite) ? { boot: String(boot), uptime, wall, tick } : undefined;
  } catch {
    return undefined; // not written by troupe: it is replaced
  }
}

async function machine(world: World): Promise<ClockSource> {
  return { wall: world.date, uptime: machineClock(), boot: await bootId() };
}

/** How often it is looked up how long the machine has slept: rarely enough to cost nothing. */
const LOOK_MS = 50;

/**
 * The monotonic clock is precise and the same for all processes, but on Linux it stands still while the machine sleeps. The
 * kernel's uptime goes on, but is coarse. The difference of the two is the time slept: uptime is read first, so that a pause of
 * this process between the two readings makes the difference smaller, and the largest ever seen is right.
 */
function machineClock(): () => number {
  const monotonic = (): number => Number(process.hrtime.bigint()) / 1e6;
  if (process.platform !== 'linux') return monotonic;
  let slept = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (monotonic() - lookedAt >= LOOK_MS) {
      const coarse = machineUptime() * 1_000;
      lookedAt = monotonic();
      slept = Math.max(slept, coarse - lookedAt);
    }
    return monotonic() + slept;
  };
}
