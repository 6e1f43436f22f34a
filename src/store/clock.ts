// A clock that only runs, the same for all daemons on a state directory: whoever sets the wall clock moves nothing here.
// It counts the time since the machine was started, sleep included; only across a restart is the wall clock believed.

import { uptime as machineUptime } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { bootId } from './process-identity.ts';
import type { Store } from './store.ts';

export type Clock = {
  /** Ticks: whole milliseconds, never fewer than before. */
  now(): number;
  /** Milliseconds since this machine was started. */
  uptime(): number;
  readonly boot: string;
  close(): void;
};

export type ClockSource = { wall(): number; uptime(): number; readonly boot: string };

/** A moment by all three clocks, as it is kept on the disk. */
type Anchor = { readonly boot: string; readonly uptime: number; readonly wall: number; readonly tick: number };

/** So that after a restart only the time counts in which the machine was off. */
const REFRESH_MS = 60_000;
/** What is off for longer, or wakes with a wrong clock, has slept for a day: rather too late an end than one too early. */
const LONGEST_OFF_MS = 86_400_000;
const PATIENCE_MS = 1_000;
/** Processes may read the time since the start of the machine as much apart. */
const SLACK_MS = 1_000;

export async function openClock(store: Store, source?: ClockSource): Promise<Clock> {
  const { boot, uptime, wall } = source ?? (await machine());
  let offset = 0;
  let last = 0;

  /** Agrees with all others by compare-and-set; while the disk refuses, with what it last said. */
  async function settle(): Promise<void> {
    for (;;) {
      const text = store.get<{ value: string }>('getMeta', ['clock'])?.value;
      const anchor = anchorIn(text);
      const moment = { boot, uptime: uptime(), wall: wall() };
      const isKept = anchor !== undefined && isSameBoot(anchor, moment);
      const tick = tickAt(anchor, moment);
      offset = tick - moment.uptime;
      if (isKept && moment.uptime - anchor.uptime < REFRESH_MS) return;
      if (await isSet({ ...moment, tick }, text ?? '')) return;
    }
  }

  const isSet = (anchor: Anchor, before: string): Promise<boolean> =>
    store.commit('setClock', [JSON.stringify(anchor), before]).catch(() => true); // it is tried again in a minute

  // Another program may hold the database: it keeps nobody from starting.
  await Promise.race([settle(), wait(PATIENCE_MS, undefined, { ref: false })]);
  const timer = setInterval(() => settle().catch(() => {}), REFRESH_MS).unref(); // the store says itself what it lacks

  return {
    now() {
      last = Math.max(last, Math.floor(offset + uptime()));
      return last;
    },
    uptime,
    boot,
    close: () => clearInterval(timer),
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
    return undefined; // somebody else's words: they are replaced
  }
}

async function machine(): Promise<ClockSource> {
  return { wall: Date.now, uptime: machineClock(), boot: await bootId() };
}

/** How often the time that the machine has slept is looked up: rarely enough to cost nothing. */
const LOOK_MS = 50;

/**
 * The monotonic clock is fine and the same for all processes, but on Linux it stands still while the machine sleeps. What is
 * missing is read from the kernel's uptime, which is coarse: read before the other, it is never ahead, and the most it was
 * ever ahead of the other is the truth, however long this process was held up in between.
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
