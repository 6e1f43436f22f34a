// How a task ends when something dies: every state of its chart × every way to die, as docs/TASKS.md has it; and then many
// tasks, many daemons and chance. Where a state writes, its daemon dies before the write is on the disk, and after it.

import { describe, expect, it } from 'vitest';
import { taskMachine } from '../../machines/task.ts';
import { random } from '../chaos/random.ts';
import {
  type SimulatedDaemon,
  type Simulation,
  type SimulationOptions,
  taskSimulation,
} from '../support/task-simulation.ts';

type Stage = { readonly s: Simulation; readonly a: SimulatedDaemon; readonly b: SimulatedDaemon };
type Way = { readonly options?: SimulationOptions; readonly reach: (stage: Stage) => void | Promise<void> };
type Fault = (stage: Stage) => void | Promise<void>;

// ── How a state is reached, at daemon a ──────────────────────────────────────

/** What the caller of a daemon that dies hears is no business of this test. */
const create = ({ a }: Stage) => void a.create().catch(() => {});

async function queue(stage: Stage): Promise<void> {
  stage.a.server.setRoom(0);
  create(stage);
  await until(stage, 'queued');
}

async function follow(stage: Stage): Promise<void> {
  create(stage);
  await until(stage, 'dispatched');
  await stage.s.pass(10); // its server has said that it runs a task of its own
}

async function ask(stage: Stage): Promise<void> {
  const [row] = stage.s.rows();
  stage.a.asked(row?.id ?? '', 1);
  await stage.s.pass(10);
  expect(stage.s.rows()[0]?.status).toBe('input_required');
}

const WAYS: Record<string, Way> = {
  creating: { reach: create },
  queued: { reach: queue },
  'queued, asking': {
    async reach(stage) {
      await queue(stage);
      await ask(stage);
    },
  },
  reserving: {
    async reach(stage) {
      await queue(stage);
      stage.a.server.setRoom(1);
    },
  },
  returning: {
    async reach(stage) {
      await queue(stage);
      stage.s.disk.isFull = true;
      stage.a.server.setRoom(1);
      await until(stage, 'returning');
      stage.s.disk.isFull = false;
    },
  },
  returned: {
    async reach(stage) {
      await queue(stage);
      stage.a.server.setRoom(1);
      stage.a.server.goAway(1_000);
    },
  },
  dispatched: { reach: create },
  'dispatched, asking': {
    async reach(stage) {
      create(stage);
      await until(stage, 'dispatched');
      await ask(stage);
    },
  },
  'dispatched, followed': { options: { transport: 'http' }, reach: follow },
  'dispatched, may be run again': { options: { rerun: true }, reach: create },
  apart: {
    options: { transport: 'http' },
    async reach(stage) {
      await follow(stage);
      stage.a.server.goAway(1_000);
    },
  },
  held: {
    reach(stage) {
      stage.a.server.goAway(1_500);
      create(stage);
    },
  },
  requeueing: {
    reach(stage) {
      create(stage);
      stage.a.server.goAway(1_000);
    },
  },
  rerunning: {
    options: { rerun: true },
    async reach(stage) {
      create(stage);
      await until(stage, 'dispatched');
      stage.a.server.goAway(1_000);
    },
  },
  ending: { reach: create },
  releasing: {
    async reach(stage) {
      await queue(stage);
      void stage.a.stop();
    },
  },
};

// ── What happens to it there ─────────────────────────────────────────────────

const FAULTS: Record<string, Fault> = {
  nothing() {},
  killed: ({ a }) => a.kill(),
  stopped: ({ a }) => void a.stop(),
  'cancelled elsewhere': async ({ s, b }) => {
    const [row] = s.rows();
    if (row) await Promise.all([b.tasks.cancel(row.id, 'p').catch(() => {}), s.pass(10)]); // it may have ended
  },
  adopted: async ({ s, a }) => {
    a.freeze();
    await s.pass(6_000);
    a.thaw();
  },
  'disk full': async ({ s }) => {
    s.disk.isFull = true;
    await s.pass(3_500);
    s.disk.isFull = false;
  },
  'server gone': ({ a }) => a.server.goAway(1_000),
};

// ── How it ends ──────────────────────────────────────────────────────────────

const ONCE = 'completed, sent once';
const TWICE = 'completed, sent twice';
const UNKNOWN = 'outcome unknown, sent once';
/** `dispatching` was on the disk, and no byte had been sent. */
const UNSENT = 'outcome unknown, never sent';
const CANCELLED = 'cancelled, sent once';
const NEVER = 'cancelled, never sent';
/** The caller was refused, or never heard of it. */
const NONE = 'no task';

/** Before the write of that state is on the disk, and after it, where that makes a difference. */
const EXPECTED: Record<keyof typeof WAYS, Record<keyof typeof FAULTS, string | [string, string]>> = {
  creating: {
    ...{ nothing: ONCE, killed: [NONE, UNSENT], stopped: ONCE, 'cancelled elsewhere': [ONCE, CANCELLED] },
    ...{ adopted: [UNKNOWN, UNSENT], 'disk full': [NONE, ONCE], 'server gone': ONCE },
  },
  queued: unsent(),
  'queued, asking': unsent(),
  reserving: {
    ...{ nothing: ONCE, killed: [ONCE, UNSENT], stopped: ONCE, 'cancelled elsewhere': CANCELLED },
    ...{ adopted: [ONCE, UNSENT], 'disk full': ONCE, 'server gone': ONCE },
  },
  returning: unsent(),
  returned: {
    ...{ nothing: ONCE, killed: [ONCE, UNSENT], stopped: ONCE, 'cancelled elsewhere': NEVER },
    ...{ adopted: [ONCE, UNSENT], 'disk full': ONCE, 'server gone': ONCE },
  },
  dispatched: sent(),
  'dispatched, asking': sent(),
  'dispatched, followed': followed(),
  'dispatched, may be run again': {
    ...{ nothing: ONCE, killed: TWICE, stopped: TWICE, 'cancelled elsewhere': CANCELLED },
    ...{ adopted: TWICE, 'disk full': ONCE, 'server gone': TWICE },
  },
  apart: followed(),
  held: unsent(),
  requeueing: {
    ...{ nothing: ONCE, killed: [UNSENT, ONCE], stopped: ONCE, 'cancelled elsewhere': NEVER },
    ...{ adopted: [UNSENT, ONCE], 'disk full': ONCE, 'server gone': ONCE },
  },
  rerunning: {
    ...{ nothing: TWICE, killed: TWICE, stopped: TWICE, 'cancelled elsewhere': CANCELLED },
    ...{ adopted: TWICE, 'disk full': TWICE, 'server gone': TWICE },
  },
  ending: {
    ...{ nothing: ONCE, killed: [UNKNOWN, ONCE], stopped: ONCE, 'cancelled elsewhere': ONCE },
    ...{ adopted: [UNKNOWN, ONCE], 'disk full': ONCE, 'server gone': ONCE },
  },
  releasing: unsent(),
};

function unsent() {
  return {
    ...{ nothing: ONCE, killed: ONCE, stopped: ONCE, 'cancelled elsewhere': NEVER },
    ...{ adopted: ONCE, 'disk full': ONCE, 'server gone': ONCE },
  };
}
function sent() {
  return {
    ...{ nothing: ONCE, killed: UNKNOWN, stopped: UNKNOWN, 'cancelled elsewhere': CANCELLED },
    ...{ adopted: UNKNOWN, 'disk full': ONCE, 'server gone': UNKNOWN },
  };
}
function followed() {
  return {
    ...{ nothing: ONCE, killed: ONCE, stopped: ONCE, 'cancelled elsewhere': CANCELLED },
    ...{ adopted: ONCE, 'disk full': ONCE, 'server gone': ONCE },
  };
}

describe.each(Object.entries(WAYS))('a task that is %s', (name, way) => {
  it.each(Object.entries(FAULTS))('%s', async (fault, apply) => {
    const expected = EXPECTED[name]?.[fault];
    const [before, after] = typeof expected === 'string' ? [expected, expected] : (expected ?? []);
    const state = name.split(',')[0] ?? '';
    expect(await end(await afterwards(way, state, 0, apply)), 'before it is on the disk').toBe(before);
    expect(await end(await afterwards(way, state, 1, apply)), 'after it is on the disk').toBe(after);
  });
});

describe.each(['a', 'b'] as const)('cancelled through daemon %s', (name) => {
  it.each(['dispatched', 'dispatched, asking', 'dispatched, followed'])(
    'the server of one that is %s is told',
    async (way) => {
      const cancel: Fault = async (stage) => {
        const [row] = stage.s.rows();
        await Promise.all([stage[name].tasks.cancel(row?.id ?? '', 'p'), stage.s.pass(10)]);
      };
      const { s } = await afterwards(WAYS[way] as Way, 'dispatched', 0, cancel);
      expect(s.sent).toHaveLength(1);
      expect(s.stopped).toEqual(s.sent);
    },
  );
});

it('walks every state of the chart in which time passes', () => {
  const states = Object.keys(taskMachine.states.live?.states.run?.states ?? {});
  const walked = new Set(Object.keys(WAYS).map((name) => name.split(',')[0]));
  expect(states.filter((state) => !walked.has(state))).toEqual(['known']);
});

async function afterwards(way: Way, state: string, passedMs: 0 | 1, fault: Fault): Promise<Stage> {
  const s = taskSimulation(way.options);
  const stage = { s, a: s.daemon('a'), b: s.daemon('b') };
  await s.pass(4_000); // until each may judge the other
  await way.reach(stage);
  await until(stage, state);
  await s.pass(passedMs);
  await fault(stage);
  stage.a.server.setRoom(10);
  await s.pass(15_000);
  return stage;
}

/** Where the task has come to, which the disk, the servers, those who were told and those who ask must agree on. */
async function end({ s, a, b }: Stage): Promise<string> {
  expect([...a.runs(), ...b.runs()], 'nobody runs it any more').toEqual([]);
  const [row] = s.rows();
  const times = ['never sent', 'sent once', 'sent twice'][s.sent.length];
  if (!row) return s.sent.length === 0 ? NONE : `no task, ${times}`;
  expect(row.phase).toBe('ended');
  const last = s.told.filter(({ status }) => ['completed', 'failed', 'cancelled'].includes(status));
  expect(
    last.filter(({ status }) => status !== row.status),
    'told otherwise',
  ).toEqual([]);
  const outcome = await b.tasks.outcome(row.id, 'p');
  const isKnown = outcome.ok || outcome.failure.code === 'cancelled';
  expect(isKnown ? row.status : outcome.failure.delivery).toBe(isKnown ? row.status : 'outcome unknown');
  return `${isKnown ? row.status : 'outcome unknown'}, ${times}`;
}

async function until({ s, a }: Stage, run: string): Promise<void> {
  for (let ms = 0; ms < 5_000 && a.runs()[0] !== run; ms++) await s.pass(1);
  expect(a.runs()).toEqual([run]);
}

// ── Chance ───────────────────────────────────────────────────────────────────

const SEEDS = Array.from({ length: 16 }, (_, nth) => nth + 1);

describe('three daemons, a dozen tasks, and chance', () => {
  it.each(SEEDS)('keep every promise with seed %i', async (seed) => {
    const chance = random(seed);
    const rerun = chance.between(0, 1) === 1;
    const transport = chance.oneOf(['stdio', 'http'] as const);
    const s = taskSimulation({ seed, rerun, transport, toolMs: chance.between(1, 1_500) });
    const daemons = ['a', 'b', 'c'].map((name) => s.daemon(name));
    const all = [...daemons];
    const restart = (daemon: SimulatedDaemon): void => {
      const next = s.daemon(`${daemon.name}'`);
      daemons.splice(daemons.indexOf(daemon), 1, next);
      all.push(next);
    };
    const acknowledged: string[] = [];
    await s.pass(4_000);
    for (let nth = 0; nth < 12; nth++) {
      const daemon = chance.oneOf(daemons);
      void daemon.create().then(
        ({ taskId }) => acknowledged.push(taskId),
        () => {}, // refused, and not promised
      );
      await s.pass(chance.between(0, 400));
      misfortune(s, daemons, chance, restart);
      await s.pass(chance.between(0, 3_000));
    }
    for (const daemon of all) daemon.server.setRoom(100);
    await s.pass(30_000);

    expect(acknowledged.length).toBeGreaterThan(3);
    const rows = new Map(s.rows().map((row) => [row.id, row]));
    expect(
      acknowledged.filter((id) => !rows.has(id)),
      'lost',
    ).toEqual([]);
    for (const row of rows.values()) {
      const times = s.sent.filter((id) => id === row.id).length;
      expect([row.id, row.phase]).toEqual([row.id, 'ended']);
      expect(times, `${row.id} was sent`).toBeLessThanOrEqual(rerun ? 3 : 1);
      if (row.status === 'completed') expect(times).toBeGreaterThan(0);
      if (row.delivery === 'not sent') expect(times).toBe(0);
      const ends = s.told.filter(({ id, status }) => id === row.id && !['working', 'input_required'].includes(status));
      expect(
        ends.filter(({ status }) => status !== row.status),
        'told otherwise',
      ).toEqual([]);
    }
    expect(all.flatMap((daemon) => daemon.runs())).toEqual([]);
  });
});

function misfortune(
  s: Simulation,
  daemons: readonly SimulatedDaemon[],
  chance: ReturnType<typeof random>,
  restart: (daemon: SimulatedDaemon) => void,
): void {
  const daemon = chance.oneOf(daemons);
  const row = s.rows().at(-1);
  const kinds = {
    killed() {
      daemon.kill();
      restart(daemon);
    },
    stopped() {
      void daemon.stop();
      restart(daemon);
    },
    frozen() {
      daemon.freeze();
      s.world.after(chance.between(1, 8_000), daemon.thaw);
    },
    full() {
      s.disk.isFull = true;
      s.world.after(chance.between(1, 4_000), () => {
        s.disk.isFull = false;
      });
    },
    gone: () => daemon.server.goAway(chance.between(1, 3_000)),
    narrow: () => daemon.server.setRoom(chance.between(0, 2)),
    cancelled: () => void (row && daemon.tasks.cancel(row.id, 'p').catch(() => {})), // it may have ended
    fine() {},
  };
  chance.oneOf(Object.values(kinds))();
}
