// The fleet: one actor per server, none of which can hurt another, and a successor comes on only when the old one left.
// This is every configuration of one member beside a neighbour; fleet-stories.test.ts has real children.

import { describe, expect, it } from 'vitest';
import { type AnyMachineSnapshot, initialTransition } from 'xstate';
import { type FleetEvent, fleetMachine, type Launch, type Member } from '../../machines/fleet.ts';
import { begun, everyStep, reactions, type Step, timers, told } from '../support/paths.ts';

const limit = { intensity: 1, periodMs: 60_000 };
const launch = (name: string, start: boolean): Launch => ({
  spec: {
    name,
    isRemote: false,
    openMs: 1,
    drainMs: 1,
    closeMs: 1,
    restart: { intensity: 1, periodMs: 1, backoffMs: [1] },
  },
  start,
});
const [lazy, eager, neighbour] = [launch('a', false), launch('a', true), launch('b', true)];
const commands = ['start', 'stop', 'restart', 'wanted', 'login.done'] as const;
const orders: FleetEvent[] = [
  { type: 'server.set', launch: lazy },
  { type: 'server.set', launch: eager },
  { type: 'server.set', launch: neighbour },
  { type: 'server.removed', name: 'a' },
  ...commands.map((type) => ({ type: 'server.told', name: 'a', command: { type } }) as const),
  { type: 'crash.forgotten', name: 'a' },
  { type: 'stop' },
];
const ends = (id: string): FleetEvent => ({ type: `xstate.done.actor.${id}`, output: undefined, actorId: id });
const crashes = (id: string): FleetEvent => ({ type: `xstate.error.actor.${id}`, error: 'a bug', actorId: id });

const memberOf = ({ context }: AnyMachineSnapshot, name = 'a'): Member | undefined => context.members[name];
const lifeOf = (snapshot: AnyMachineSnapshot) => {
  const member = memberOf(snapshot);
  return member?.life === 'leaving' && member.launch ? 'succeeded' : (member?.life ?? 'unknown');
};
/** An actor ends only when it was asked to leave, and crashes only while it lives. */
const possible = (snapshot: AnyMachineSnapshot): FleetEvent[] => [
  ...orders,
  ...['a', 'b'].filter((name) => memberOf(snapshot, name)?.life === 'leaving').map(ends),
  ...(memberOf(snapshot)?.life === 'alive' || memberOf(snapshot)?.life === 'leaving' ? [crashes('a')] : []),
];
const steps = everyStep(fleetMachine, limit, possible);
const running = steps.filter(({ from }) => from.value === 'running');
const name = ({ from, event }: Step) => `${from.value} ${lifeOf(from)} + ${JSON.stringify(event)}`;
const alive = { life: 'alive', crashes: 0, why: '' };

describe('in every reachable configuration', () => {
  it('begins running and empty', () => {
    const [first] = initialTransition(fleetMachine, limit);
    expect([first.value, first.context]).toEqual(['running', { limit, members: {} }]);
  });

  it('moves a member as this table says, and ignores everything else', () => {
    const leaves = { 'server.removed': 'leaving', 'server.set': 'succeeded' };
    expect(
      reactions(
        running.filter(({ event }) => event.type !== 'stop'),
        lifeOf,
      ),
    ).toEqual({
      unknown: { 'server.set': 'alive' },
      alive: { ...leaves, 'a fails': 'buried' },
      leaving: { 'server.set': 'succeeded', 'a done': 'unknown', 'a fails': 'unknown' },
      succeeded: { 'server.removed': 'leaving', 'a done': 'alive', 'a fails': 'alive' },
      buried: { 'server.set': 'alive', 'server.removed': 'unknown', 'server.told': 'alive' },
    });
  });

  it('has a child for each member that is not buried, and for nobody else', () => {
    for (const step of steps) {
      const members = Object.entries<Member>(step.to.context.members);
      const living = members.filter(([, { life }]) => life !== 'buried').map(([id]) => id);
      expect(Object.keys(step.to.children).sort(), name(step)).toEqual(living.sort());
    }
  });

  it('never begins an actor while another of that name lives, and starts it only if that is wanted', () => {
    for (const step of steps.filter((each) => begun(each).length > 0)) {
      const spawn = step.effects.find(({ type }) => type === 'xstate.spawnChild')?.params;
      const member = memberOf(step.to, spawn.id) as Member;
      const wasOver = /^xstate\.(done|error)/.test(step.event.type);
      if (!wasOver) expect(step.from.children[spawn.id], name(step)).toBeUndefined();
      else
        expect(
          step.effects.some(({ type }) => type === 'xstate.stopChild'),
          name(step),
        ).toBe(true);
      expect(begun(step), name(step)).toEqual(['server']);
      expect(spawn.input, name(step)).toBe(member.launch?.spec);
      expect(told(step), name(step)).toEqual(member.launch?.start ? [`${spawn.id}:start`] : []);
    }
  });

  it('tells a living member what it is told, asks it once to leave, and says nothing to any other', () => {
    for (const step of steps.filter((each) => begun(each).length === 0)) {
      const { from, event, to } = step;
      const asked = ['a', 'b'].filter(
        (id) => memberOf(from, id)?.life === 'alive' && memberOf(to, id)?.life === 'leaving',
      );
      const isTold = event.type === 'server.told' && from.value === 'running' && memberOf(from)?.life === 'alive';
      const words = isTold ? [`a:${event.command.type}`] : asked.map((id) => `${id}:remove`);
      expect(told(step).sort(), name(step)).toEqual(words.sort());
    }
  });

  it('leaves the neighbour alone, whatever happens to the member', () => {
    for (const step of steps.filter(({ event }) => event.type !== 'stop' && !JSON.stringify(event).includes('"b"'))) {
      if (memberOf(step.from, 'b') === undefined || step.to.status === 'done') continue;
      expect(memberOf(step.to, 'b'), name(step)).toBe(memberOf(step.from, 'b'));
      if (memberOf(step.to, 'b')) expect(step.to.children.b === step.from.children.b, name(step)).toBe(true);
    }
  });

  it('gives the successor the newest launch, and what it was told in the meantime', () => {
    for (const step of running) {
      const { from, event, to } = step;
      const before = memberOf(from);
      if (event.type === 'server.set' && event.launch.spec.name === 'a')
        expect(memberOf(to)?.launch, name(step)).toBe(event.launch);
      if (event.type === 'server.told' && lifeOf(from) === 'succeeded') {
        const kept = before?.launch?.start;
        const orders = { start: true, restart: true, stop: false, wanted: kept, 'login.done': kept };
        const start = orders[event.command.type as 'stop'];
        expect(memberOf(to), name(step)).toEqual({ ...before, launch: { ...before?.launch, start } });
      }
      if (lifeOf(from) === 'succeeded' && lifeOf(to) === 'alive')
        expect(memberOf(to), name(step)).toEqual({ ...alive, launch: before?.launch });
    }
  });

  it('counts crashes, buries with the reason, and forgets both in a new life', () => {
    for (const step of running) {
      const { from, event, to } = step;
      const [before, after] = [memberOf(from), memberOf(to)];
      if (event.type === 'xstate.error.actor.a' && before?.life === 'alive') {
        const buried = { ...before, life: 'buried', why: 'a bug' };
        const isLast = before.crashes >= limit.intensity;
        expect(after, name(step)).toEqual(isLast ? buried : { ...alive, launch: before.launch, crashes: 1 });
        expect(timers(step), name(step)).toEqual(isLast ? {} : { 'crash.forgotten': limit.periodMs });
      } else expect(timers(step), name(step)).toEqual({});
      if (event.type === 'crash.forgotten' && before)
        expect(after, name(step)).toEqual({ ...before, crashes: Math.max(0, before.crashes - 1) });
      if (before?.life === 'buried' && after?.life === 'alive') {
        const revived = event.type === 'server.told' ? { ...before.launch, start: true } : event.launch;
        expect(after, name(step)).toEqual({ ...alive, launch: revived });
      }
      if (event.type === 'server.told' && before?.life === 'buried')
        expect(after?.life, name(step)).toBe(/start/.test(event.command.type) ? 'alive' : 'buried');
    }
  });

  it('takes no orders once it stops, lets everybody go, and is done when nobody is left', () => {
    for (const { from, event, to } of steps) {
      const isOver = Object.keys(to.context.members).length === 0;
      const stops = from.value === 'stopping' || event.type === 'stop';
      expect(to.value).toBe(stops ? (isOver ? 'stopped' : 'stopping') : 'running');
      for (const { life, launch: next } of stops ? Object.values<Member>(to.context.members) : [])
        expect([life, next]).toEqual(['leaving', undefined]);
    }
  });
});
