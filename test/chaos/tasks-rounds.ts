// Rounds of kill -9 while four host processes make, watch, fetch and cancel tasks through several daemons on one state
// directory. A round is one death: of a server, of nats-server, of a daemon, of all at once; at a moment that the seed
// chooses, or at a named failpoint. Checked is what was promised for tasks, with no excuse for anybody.

import { join } from 'node:path';
import { expect } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { noted, taskLine, watchEnded } from '../support/task-line.ts';
import { taskServer } from '../support/task-server.ts';
import { inAnyOrder, type Random, random } from './random.ts';
import { checkRemains } from './remains.ts';
import { type Fleet, type Member, startCast } from './tasks-fleet.ts';
import { startHosts } from './tasks-hosts.ts';
import { createTasksLedger, type Ending, type TasksLedger } from './tasks-ledger.ts';

export type TasksChaosOptions = { readonly seed: number; readonly rounds: number };
type Stage = { readonly fleet: Fleet; readonly ledger: TasksLedger; readonly dice: Random; readonly killed: number[] };

const PATIENT = { restart: { intensity: 1_000_000, backoffMs: [10, 100] } };
const BOB = 'a-token-of-bob-for-chaos';
/** The one whose calls may be made again. */
const AGAIN = 'again';
const SETTLED_MS = 30_000;

export async function tasksChaos({ seed, rounds }: TasksChaosOptions): Promise<Record<string, number>> {
  console.log(`chaos of tasks: seed ${seed}; TROUPE_CHAOS_SEED=${seed} makes the same choices again`);
  await using d = await daemon({ troupe: { http: { tokens: { bob: BOB } } } });
  const tallies = join(d.dir, 'tallies');
  await using kept = await taskServer(tallies);
  const servers = await settle(d, tallies, kept.url);
  const lateWrites = watchEnded(d.state);
  const deaths: Record<string, number> = {};
  const died = (how: string, many = 1) => {
    deaths[how] = (deaths[how] ?? 0) + many;
  };
  await using fleet = await startCast(d, {
    ...{ names: ['one', 'two', 'three'], seed, onFailpoint: (name) => died(name.split(':')[0] as string) },
  });
  expect(await d.down()).toBe(0);
  const stage: Stage = { fleet, ledger: createTasksLedger(), dice: random(seed), killed: [] };
  await using hosts = await startHosts({ ...{ ledger: stage.ledger, seed, servers }, hosts: await waysIn(fleet) });

  const started = performance.now();
  const first = inAnyOrder(EACH, stage.dice);
  const count = () => Object.values(deaths).reduce((sum, each) => sum + each, 0);
  while (count() < rounds) {
    await somethingHeard(stage, stage.dice.between(1, 25));
    const victim = first.shift() ?? stage.dice.oneOf(VICTIMS);
    died(victim, await KILL[victim](stage));
  }
  await disarm(stage);
  const lastKill = performance.now();
  await hosts.finish();
  const settledMs = await settled(fleet, lastKill);
  const endings = await readEndings(stage);
  expect(fleet.faults).toEqual([]);
  expect(lateWrites()).toEqual([]);
  for (const pid of stage.killed) expect(await isAlive(pid)).toBe(false);
  fleet.close();
  expect((await d.cli('down', '--all')).exitCode).toBe(0);
  await checkRemains(d);
  const summary = {
    ...{ seed, rounds: count(), ...deaths, seconds: Math.round((lastKill - started) / 1_000), settledMs },
    ...stage.ledger.balance(endings, noted(tallies), [AGAIN]),
  };
  console.log(`chaos of tasks: ${JSON.stringify(summary)}`);
  return summary;
}

/** Some that queue behind each other, some that do not, one whose calls may be repeated, one with tasks of its own. */
async function settle(d: Daemon, tallies: string, url: string): Promise<string[]> {
  const server = (troupe: object) => {
    const each = fixture('tallies', { ...PATIENT, ...troupe });
    each.args.push(tallies);
    return each;
  };
  const servers = {
    narrow: server({ maxInFlight: 2 }),
    wide: server({}),
    [AGAIN]: server({ rerun: true }),
    kept: { type: 'http', url, 'x-troupe': PATIENT },
  };
  await d.write(servers);
  for (const name of Object.keys(servers)) await d.until(name, 'ready', 30_000);
  return Object.keys(servers);
}

async function waysIn({ members }: Fleet) {
  const [first] = members as [Member, ...Member[]];
  const { NATS_URL } = await first.daemon.ask<{ NATS_URL: string }>('env');
  const { host, username } = new URL(NATS_URL);
  const nats = (tree: string) => ({ kind: 'nats' as const, options: { servers: host, token: username, tree } });
  const http = (more: object) => ({ kind: 'http' as const, options: { urls: members.map(({ url }) => url), ...more } });
  return [nats('troupe'), nats('troupe.as.alice'), http({}), http({ bearer: BOB })];
}

/** A moment is a number of answers, not of milliseconds. */
async function somethingHeard({ ledger }: Stage, count: number): Promise<void> {
  const goal = ledger.heard + count;
  await eventually(() => ledger.heard >= goal, 60_000);
}

// ── Killing ──────────────────────────────────────────────────────────────────

const EACH = ['server', 'daemon', 'nats', 'everything'] as const;
type Victim = (typeof EACH)[number];
const times = (count: number, victim: Victim): Victim[] => Array.from({ length: count }, () => victim);
/** A daemon takes a second of processor time to come back, a server a twentieth of that. */
const VICTIMS = [...times(44, 'server'), ...times(6, 'daemon'), ...times(9, 'nats'), ...times(1, 'everything')];

/** Each says how many died of it. */
const KILL: Record<Victim, (stage: Stage) => Promise<number>> = {
  async server(stage) {
    const status = await someStatus(stage);
    const busy = status?.servers.filter(({ pid, inFlight }) => pid !== null && inFlight > 0) ?? [];
    return busy.length > 0 ? kill(stage.dice.oneOf(busy).pid, stage.killed) : 0;
  },
  async daemon({ fleet, dice }) {
    const ready = fleet.members.filter(({ isReady }) => isReady);
    // One stays, so that there is always somebody to adopt; `everything` and the failpoints spare nobody.
    if (ready.length < 2) return 0;
    await fleet.kill(dice.oneOf(ready));
    return 1;
  },
  async nats(stage) {
    const status = await someStatus(stage);
    return status?.bus.state === 'online' ? kill(status.bus.pid, stage.killed) : 0;
  },
  async everything(stage) {
    const status = await someStatus(stage);
    const ready = stage.fleet.members.filter(({ isReady }) => isReady);
    await Promise.all(ready.map(stage.fleet.kill));
    return ready.length + kill(status?.bus.pid, stage.killed);
  },
};

/** What a daemon says that is up; it may die while it is asked. */
async function someStatus({ fleet, dice }: Stage) {
  const ready = fleet.members.filter(({ isReady }) => isReady);
  return ready.length === 0
    ? undefined
    : dice
        .oneOf(ready)
        .daemon.status()
        .catch(() => undefined);
}

function kill(pid: number | null | undefined, killed: number[]): 0 | 1 {
  if (typeof pid !== 'number' || killed.includes(pid)) return 0;
  killed.push(pid);
  try {
    process.kill(pid, 'SIGKILL');
    return 1;
  } catch {
    return 0; // it died by itself, or with its daemon, a moment ago
  }
}

/** Who was still to die at a failpoint dies now, and is the last to do so. */
async function disarm({ fleet }: Stage): Promise<void> {
  fleet.quiet();
  await Promise.all(fleet.members.filter(({ failpoint }) => failpoint).map(fleet.kill));
}

// ── Checking ─────────────────────────────────────────────────────────────────

/** Resolves when no task is unfinished in the eyes of any daemon, with how long after the last death that was. */
async function settled({ members }: Fleet, lastKill: number): Promise<number> {
  await eventually(() => members.every(({ isReady }) => isReady), 60_000);
  const leftMs = Math.max(0, SETTLED_MS - (performance.now() - lastKill));
  await eventually(async () => {
    for (const { daemon: each } of members) {
      await using line = await taskLine(each.socket);
      const open = (await line.all()).filter(({ phase }) => phase !== 'ended');
      expect(open, `${each.instance} has unfinished tasks`).toEqual([]);
    }
  }, leftMs);
  return Math.round(performance.now() - lastKill);
}

/** How every task ended; all daemons must tell the same, and know each that was acknowledged. */
async function readEndings({ fleet, ledger }: Stage): Promise<Map<string, Ending>> {
  const endings = new Map<string, Ending>();
  const acknowledged = ledger.acknowledged();
  const lines = await Promise.all(fleet.members.map(({ daemon: each }) => taskLine(each.socket)));
  const lists = await Promise.all(lines.map((line) => line.all()));
  const told = lists.map((list) => new Map(list.map(({ taskId, status, attempt }) => [taskId, { status, attempt }])));
  for (const each of told) expect(each).toEqual(told[0]);
  for (const [index, id] of acknowledged.entries()) {
    const line = lines[index % lines.length];
    const known = told[0]?.get(id);
    if (!line || !known) continue; // lost: the books say so
    const { text, ...failure } = await line.end(id);
    endings.set(id, { ...known, ...failure, ...(text !== undefined && { outcome: text }) } as Ending);
  }
  for (const line of lines) await line[Symbol.asyncDispose]();
  return endings;
}
