// Several daemons with their tasks in one process: one virtual clock, one disk in memory, and servers that count what reaches
// them. What is simulated are the ports; the tasks, their chart, their rows and their owners are those that run.
// Use: `const s = taskSimulation({ … }); const a = s.daemon('a'); await s.pass(10); …`.

import { pino } from 'pino';
import { type Call, HANDED_OVER, type Outcome } from '../../src/calls/call.ts';
import type { Failure } from '../../src/protocol/failures.ts';
import type { Clock } from '../../src/store/clock.ts';
import type { TaskRow } from '../../src/store/rows.ts';
import type { Seal } from '../../src/store/seal.ts';
import { createOwners } from '../../src/tasks/owners.ts';
import { createTaskRows } from '../../src/tasks/rows.ts';
import type { TaskFleet } from '../../src/tasks/servers.ts';
import type { Order, TaskNews } from '../../src/tasks/task.ts';
import { createTasks } from '../../src/tasks/tasks.ts';
import { createWaiters } from '../../src/tasks/waiters.ts';
import type { World } from '../../src/world/world.ts';
import { memoryDisk, memoryStore } from './simulated-disk.ts';
import { simulatedWorld } from './simulated-world.ts';

export type SimulationOptions = {
  readonly seed?: number;
  readonly transport?: 'stdio' | 'http';
  /** Whether the operator lets a lost call be made again. */
  readonly rerun?: boolean;
  /** How long the tool takes. */
  readonly toolMs?: number;
  /** How long a daemon that stops waits for what was sent. */
  readonly drainMs?: number;
};
export type Simulation = ReturnType<typeof taskSimulation>;
export type SimulatedDaemon = ReturnType<Simulation['daemon']>;

const SETTINGS = {
  maxOpen: 1_000,
  ttlMs: 86_400_000,
  maxTtlMs: 86_400_000,
  maxResultBytes: 1_000_000,
  keepMs: 0,
  pollMs: 1_000,
};
const ORDER: Order = { principal: 'p', door: 'nats', server: 's', tool: 't', params: Buffer.from('{"name":"t"}') };
const SEAL = {
  seal: (text: string | Uint8Array) => Buffer.from(text as Uint8Array),
  openBytes: (sealed: Uint8Array) => Buffer.from(sealed),
} as unknown as Seal;

/** What happens outside of all daemons. */
type Outside = {
  readonly world: World;
  readonly options: Required<SimulationOptions>;
  /** The tasks whose bytes reached a server, in order. */
  readonly sent: string[];
  /** The tasks that a server was told to stop. */
  readonly stopped: string[];
  /** Tasks of a remote server's own: when each is done. They outlive every daemon. */
  readonly upstream: Map<string, number>;
};

export function taskSimulation(given: SimulationOptions = {}) {
  const options = { seed: 1, transport: 'stdio', rerun: false, toolMs: 500, drainMs: 200, ...given } as const;
  const world = simulatedWorld(options.seed);
  const disk = memoryDisk();
  const outside: Outside = { world, options, sent: [], stopped: [], upstream: new Map() };
  const locks = new Set<string>();
  const listeners = new Map<string, (id: string) => void>();
  const told: { readonly by: string; readonly id: string; readonly status: string }[] = [];

  function announce(from: string, id: string): void {
    for (const [name, hear] of listeners) if (name !== from) hear(id);
  }

  function daemon(name: string) {
    const life = mortal(world);
    const clock: Clock = { now: () => 1e6 + world.now(), uptime: () => 1e6 + world.now(), boot: 'boot', close() {} };
    const store = memoryStore(disk, life.world);
    const server = simulatedServer(outside, life.world);
    const logger = pino({ enabled: false });
    const owners = createOwners({
      world: life.world,
      store,
      clock,
      daemon: name,
      isAlive: (other) => locks.has(other),
      isNeeded: () => true,
      onOverslept: () => tasks.overslept(),
      onTrouble() {},
    });
    const tasks = createTasks({
      world: life.world,
      settings: () => SETTINGS,
      rows: createTaskRows({ world, store, seal: SEAL, clock, owner: owners.id, settings: () => SETTINGS }),
      owners,
      waiters: createWaiters(life.world),
      peers: {
        online() {},
        tell: (id) => void life.world.after(1, () => announce(name, id)),
        close() {},
      },
      fleet: server.fleet,
      tell: ({ task }: TaskNews) => told.push({ by: name, id: task.taskId, status: task.status }) > 0,
      audit() {},
      logger,
      onStatus() {},
      onProgress() {},
      onGone() {},
    });
    const begun = owners.start().then(() => tasks.start());

    function die(): void {
      life.end();
      locks.delete(name);
      listeners.delete(name);
    }

    locks.add(name);
    listeners.set(name, (id) => life.run(() => tasks.told(id, undefined)));
    return {
      name,
      begun,
      server,
      tasks: tasks.api,
      create: (order: Partial<Order> = {}) => tasks.api.create({ ...ORDER, session: 'host', ...order }),
      asked: tasks.asked,
      /** Where its tasks are: `queued`, `ending`, …; those of the dead are nowhere. */
      runs: () => (locks.has(name) ? tasks.states().map((value) => (value as { live: { run: string } }).live.run) : []),
      kill: die,
      /** Stops in order, as `troupe down` does. */
      async stop(): Promise<void> {
        tasks.stopWaiting();
        await tasks.leave();
        await server.drain();
        await tasks.ended();
        await owners.close();
        die();
      },
      /** As SIGSTOP and SIGCONT do. */
      freeze: life.freeze,
      thaw: life.thaw,
    };
  }

  return {
    ...outside,
    disk,
    told,
    daemon,
    pass: world.pass,
    rows: (): TaskRow[] => disk.db.prepare('SELECT * FROM tasks ORDER BY seq').all() as TaskRow[],
  };
}

/** The world of a daemon that can die and be stopped: what is due meanwhile is not done, or is done when it goes on. */
function mortal(world: World) {
  const late = new Set<() => void>();
  let state: 'runs' | 'frozen' | 'dead' = 'runs';
  const run = (work: () => void): void => {
    if (state === 'runs') work();
    else if (state === 'frozen') late.add(work);
  };
  const own: World = {
    ...world,
    after: (ms, work) => world.after(ms, () => run(work)),
    every: (ms, work) => world.every(ms, () => run(work)),
  };
  return {
    world: own,
    run,
    end(): void {
      state = 'dead';
    },
    freeze(): void {
      if (state === 'runs') state = 'frozen';
    },
    thaw(): void {
      if (state === 'frozen') state = 'runs';
      if (state === 'dead') return;
      const works = [...late];
      late.clear();
      for (const work of works) work();
    },
  };
}

type Entry = { readonly call: Call; phase: 'waiting' | 'reserving' | 'granted' | 'sent' | 'over' };

/** A server as one daemon has it, with its lane: one call after the other is sent, answered, lost or refused. */
function simulatedServer({ world: outer, options, sent, stopped, upstream }: Outside, world: World) {
  const entries = new Set<Entry>();
  let state: 'ready' | 'waiting' | 'stopped' = 'ready';
  let room = Number.POSITIVE_INFINITY;

  function settle(entry: Entry, outcome: Outcome): void {
    if (entry.phase === 'over') return;
    entry.phase = 'over';
    entries.delete(entry);
    entry.call.settle(outcome);
  }

  function fail(entry: Entry, code: Failure['code']): void {
    const delivery = entry.phase === 'sent' ? 'outcome unknown' : 'not sent';
    settle(entry, { ok: false, failure: { code, delivery, message: `${code} by simulation`, server: 's', state } });
  }

  function pump(): void {
    for (const entry of [...entries]) {
      const taken = [...entries].filter(({ phase }) => phase !== 'waiting').length;
      if (entry.phase === 'waiting' && taken < room) dispatch(entry);
    }
  }

  function dispatch(entry: Entry): void {
    const { reserve } = entry.call;
    if (!reserve) return send(entry);
    entry.phase = 'reserving';
    void reserve().then((mayBeSent) => world.after(1, () => decided(entry, mayBeSent)));
  }

  function decided(entry: Entry, mayBeSent: boolean): void {
    if (entry.phase !== 'reserving') return;
    if (mayBeSent) send(entry);
    else fail(entry, 'cancelled');
  }

  function send(entry: Entry): void {
    const { call } = entry;
    entry.phase = 'sent';
    if (call.upstream !== undefined) return follow(entry, call.upstream);
    sent.push(call.task ?? '');
    if (options.transport === 'stdio') return void world.after(options.toolMs, () => answer(entry));
    const taskId = `up-${sent.length}`;
    upstream.set(taskId, outer.now() + options.toolMs);
    world.after(1, () => entry.phase === 'sent' && call.onUpstream?.({ taskId, status: 'working' }));
    follow(entry, taskId);
  }

  function follow(entry: Entry, taskId: string): void {
    const doneAt = upstream.get(taskId) ?? 0;
    world.after(Math.max(1, doneAt - outer.now()), () => answer(entry));
  }

  const answer = (entry: Entry) => settle(entry, { ok: true, result: Buffer.from('{"content":[]}'), isError: false });

  function leave(next: 'waiting' | 'stopped'): void {
    state = next;
    for (const entry of [...entries]) fail(entry, entry.phase === 'sent' ? 'lost' : 'unavailable');
  }

  const gate = () => ({ mode: state === 'ready' ? 'open' : 'refuse', state, why: '' });
  const member = {
    server: 's',
    config: {
      transport: options.transport,
      settings: { rerun: options.rerun ? [{ tools: '*', when: 'always' }] : [] },
    },
    lane: {
      get gate() {
        return gate();
      },
    },
  };
  const fleet = {
    submit(call: Call): boolean {
      const entry: Entry = { call, phase: 'waiting' };
      if (state !== 'ready') fail(entry, 'unavailable');
      else entries.add(entry);
      pump();
      return true;
    },
    cancel(_: string, requestId: string, why: string): boolean {
      const entry = [...entries].find(({ call }) => call.requestId === requestId);
      if (entry?.phase === 'sent' && why !== HANDED_OVER) stopped.push(requestId);
      if (entry) fail(entry, 'cancelled');
      return entry !== undefined;
    },
    isClear: (_: Call, ahead: number) => state === 'ready' && entries.size + ahead < room,
    refusalOf: () => undefined,
    member: () => member,
    memberFor: () => member,
    members: () => [member],
  };

  return {
    fleet: fleet as unknown as TaskFleet,
    /** How many calls it takes at once. */
    setRoom(count: number): void {
      room = count;
      pump();
    },
    /** Its process dies, or it is out of reach, for so long. */
    goAway(ms: number): void {
      leave('waiting');
      world.after(ms, () => {
        if (state === 'waiting') state = 'ready';
        pump();
      });
    },
    /** Resolves when nothing is under way any more: by itself, or because the time to wait is over. */
    drain(): Promise<void> {
      return new Promise((resolve) => {
        const end = (): void => {
          leave('stopped');
          resolve();
        };
        if (entries.size === 0) end();
        else world.after(options.drainMs, end);
      });
    },
  };
}
