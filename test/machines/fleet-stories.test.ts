// Stories of the fleet with real server actors as children, on a simulated clock, each with a connection of one line.
// They show that XState does what the chart hopes for: names are reused, crashes stay where they happen.

import { describe, expect, it } from 'vitest';
import { type AnyActorRef, createActor, fromCallback, fromTransition, SimulatedClock } from 'xstate';
import { contained } from '../../machines/contained.ts';
import { fleetMachine, type Launch, type Told } from '../../machines/fleet.ts';
import { type FromConnection, type ServerSpec, serverMachine, type ToConnection } from '../../machines/server.ts';
import { stateOf } from '../support/paths.ts';

const launch = (name: string, start = true, openMs = 1_000): Launch => ({
  spec: {
    name,
    isRemote: false,
    openMs,
    drainMs: 2_000,
    closeMs: 3_000,
    restart: { intensity: 5, periodMs: 1_000, backoffMs: [100] },
  },
  start,
});

/** A fleet whose servers come up at once. `bugs` says how often each still throws: as it gets ready or as it leaves. */
function stage(limit = { intensity: 2, periodMs: 60_000 }) {
  const clock = new SimulatedClock();
  const lines = new Map<string, (event: FromConnection) => void>();
  const heard: string[] = [];
  const bugs: Record<string, number> = {};
  const stumble = ({ context: { spec } }: { context: { spec: ServerSpec } }) => {
    bugs[spec.name] = (bugs[spec.name] ?? 0) - 1;
    if (Number(bugs[spec.name]) >= 0) throw new Error('a bug');
    return false;
  };
  const connection = fromCallback<ToConnection, ServerSpec>(({ sendBack, receive, input: { name } }) => {
    heard.push(`${name} open`);
    lines.set(name, sendBack as (event: FromConnection) => void);
    receive(({ type }) => heard.push(`${name} ${type}`));
    sendBack({ type: 'connection.ready' });
    return () => heard.push(`${name} ended`);
  });
  const server = serverMachine.provide({
    actors: { connection },
    actions: { blame: stumble, recover: (given) => given.event.type === 'connection.ready' && stumble(given) },
    guards: { headsFor: (given, next) => stumble(given) || given.context.next === next },
  });
  const machine = fleetMachine.provide({ actors: { server: contained(server) } });
  const actor = createActor(machine, { input: limit, clock }).start();
  const child = (name: string): AnyActorRef | undefined => actor.getSnapshot().children[name];
  const state = (name: string) => child(name) && stateOf(child(name)?.getSnapshot());
  const member = (name: string) => actor.getSnapshot().context.members[name];
  const set = (...given: Parameters<typeof launch>) => actor.send({ type: 'server.set', launch: launch(...given) });
  const tell = (name: string, type: Told['type']) => actor.send({ type: 'server.told', name, command: { type } });
  const remove = (name: string) => actor.send({ type: 'server.removed', name });
  const say = (name: string, event: FromConnection) => lines.get(name)?.(event);
  return { actor, clock, bugs, heard, child, state, member, set, tell, remove, say };
}
const died = { type: 'connection.closed', why: 'exit 1' } as const;

it('brings a server on, tells it, and forgets it when it has left', () => {
  const { clock, set, tell, remove, state, member, heard } = stage();
  set('a', false);
  expect(state('a')).toBe('stopped');
  tell('a', 'start');
  expect(state('a')).toBe('up.ready.heard');
  remove('a');
  expect([state('a'), member('a')?.life]).toEqual(['up.draining', 'leaving']);
  clock.increment(2_000);
  clock.increment(3_000);
  expect([state('a'), member('a')]).toEqual([undefined, undefined]);
  expect(heard).toEqual(['a open', 'a drain', 'a close', 'a ended']);
});

it('brings the successor on only when the old one has left, and only the last of many', () => {
  const { set, say, child, state, heard } = stage();
  set('a');
  const old = child('a');
  set('a', true, 7);
  set('a', true, 8);
  expect([child('a') === old, state('a'), heard]).toEqual([true, 'up.draining', ['a open', 'a drain']]);
  say('a', died);
  expect(heard).toEqual(['a open', 'a drain', 'a ended', 'a open']);
  expect([child('a') === old, state('a')]).toEqual([false, 'up.ready.heard']);
  expect(child('a')?.getSnapshot().context.spec.openMs).toBe(8);
});

it('keeps for the successor what is told while the old one leaves', () => {
  const { set, tell, say, state } = stage();
  set('a');
  set('a');
  tell('a', 'stop');
  say('a', died);
  expect(state('a')).toBe('stopped');
});

it('treats a server called constructor like any other', () => {
  const { set, say, remove, tell, state, member } = stage();
  tell('constructor', 'start');
  remove('toString');
  set('constructor');
  expect(state('constructor')).toBe('up.ready.heard');
  remove('constructor');
  say('constructor', died);
  expect(Object.hasOwn({ ...member('constructor') }, 'life')).toBe(false);
});

describe('when a server actor crashes', () => {
  it('gives it a fresh life, ends its connection, and leaves the neighbour as it was', () => {
    const { set, tell, child, state, member, bugs, heard } = stage();
    set('neighbour');
    bugs.bad = 1;
    set('bad', false);
    const [neighbour, bad] = [child('neighbour'), child('bad')];
    tell('bad', 'start');
    expect(bad?.getSnapshot().status).toBe('error');
    expect([state('bad'), member('bad')]).toMatchObject(['stopped', { life: 'alive', crashes: 1, why: '' }]);
    expect(heard).toEqual(['neighbour open', 'bad open', 'bad ended']);
    expect([child('neighbour') === neighbour, state('neighbour')]).toEqual([true, 'up.ready.heard']);
  });

  it('buries it after one crash too many, ends every connection it had, and leaves the neighbour as it was', () => {
    const { set, actor, child, state, member, bugs, heard } = stage();
    set('neighbour');
    const neighbour = child('neighbour');
    bugs.bad = 3;
    set('bad');
    expect(member('bad')).toMatchObject({ life: 'buried', crashes: 2, why: 'Error: a bug' });
    expect(heard.filter((word) => word === 'bad open')).toHaveLength(3);
    expect(heard.filter((word) => word === 'bad ended')).toHaveLength(3);
    expect([child('neighbour') === neighbour, state('neighbour'), child('bad')]).toEqual([
      true,
      'up.ready.heard',
      undefined,
    ]);
    expect(actor.getSnapshot().status).toBe('active');
  });

  it('forgets a crash after a period', () => {
    const { clock, set, state, member, bugs } = stage();
    bugs.a = 2;
    set('a');
    expect([state('a'), member('a')?.crashes]).toEqual(['up.ready.heard', 2]);
    clock.increment(59_999);
    expect(member('a')?.crashes).toBe(2);
    clock.increment(1);
    expect([state('a'), member('a')?.crashes]).toEqual(['up.ready.heard', 0]);
  });

  it('revives a buried one when somebody starts, restarts or sets it, and not for less', () => {
    for (const order of ['start', 'restart', 'set'] as const) {
      const { set, tell, state, member, bugs } = stage({ intensity: 0, periodMs: 1 });
      bugs.a = 1;
      set('a');
      tell('a', 'stop');
      tell('a', 'wanted');
      expect([state('a'), member('a')]).toMatchObject([undefined, { life: 'buried', why: 'Error: a bug' }]);
      if (order === 'set') set('a');
      else tell('a', order);
      expect([state('a'), member('a')]).toMatchObject(['up.ready.heard', { life: 'alive', crashes: 0, why: '' }]);
    }
  });

  it('buries one that cannot even be born', () => {
    const stillborn = fromTransition(
      (state) => state,
      () => {
        throw new Error('stillborn');
      },
    );
    const machine = fleetMachine.provide({ actors: { server: stillborn as any } });
    const actor = createActor(machine, { input: { intensity: 3, periodMs: 9 }, clock: new SimulatedClock() }).start();
    actor.send({ type: 'server.set', launch: launch('a', false) });
    const { context, children } = actor.getSnapshot();
    expect(context.members).toMatchObject({ a: { life: 'buried', crashes: 3, why: 'Error: stillborn' } });
    expect(children).toEqual({});
  });

  it('takes that for leaving when it was leaving: its successor comes on, or nobody does', () => {
    for (const hasSuccessor of [true, false]) {
      const { set, remove, say, state, member, bugs, heard } = stage();
      set('a');
      if (hasSuccessor) set('a');
      else remove('a');
      bugs.a = 1;
      say('a', died);
      expect(heard.slice(0, 3)).toEqual(['a open', 'a drain', 'a ended']);
      expect(state('a')).toBe(hasSuccessor ? 'up.ready.heard' : undefined);
      expect(member('a')?.crashes).toBe(hasSuccessor ? 0 : undefined);
    }
  });
});

it('stops everybody, the buried too, and ends with no child left', () => {
  const { actor, clock, set, bugs, heard, child } = stage({ intensity: 0, periodMs: 1 });
  set('a');
  set('b', false);
  bugs.c = 1;
  set('c');
  actor.send({ type: 'stop' });
  expect([actor.getSnapshot().value, child('b'), child('c')]).toEqual(['stopping', undefined, undefined]);
  set('d');
  expect(child('d')).toBeUndefined();
  clock.increment(2_000);
  clock.increment(3_000);
  expect([actor.getSnapshot().value, actor.getSnapshot().children]).toEqual(['stopped', {}]);
  expect(heard.filter((word) => word === 'a ended')).toHaveLength(1);
});
