// Our connection to NATS: it is never given up, follows NATS to a new address, and drains before it closes.
// First every configuration, then stories on a simulated clock.

import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, initialTransition, SimulatedClock } from 'xstate';
import { type BusEvent, type BusSpec, busMachine, type ToBusConnection } from '../../machines/bus.ts';
import { begun, everyStep, plain, reactions, stateOf, statesOf, timers, told } from '../support/paths.ts';

const spec: BusSpec = { retryMs: 500, drainMs: 2_000 };
const samples: BusEvent[] = [
  { type: 'address', url: 'nats://one' },
  { type: 'address', url: 'nats://two' },
  { type: 'close' },
  { type: 'connection.up' },
  { type: 'connection.down', why: 'disconnected' },
  { type: 'connection.closed', why: 'closed by the server' },
];

describe('in every reachable configuration', () => {
  const steps = everyStep(busMachine, spec, samples);
  const isLinked = (state: string) => state.startsWith('linked.');

  it('begins without an address', () => {
    const [first] = initialTransition(busMachine, spec);
    expect([stateOf(first), first.context]).toEqual(['unaddressed', { spec, url: '', why: '' }]);
  });

  it('moves as this table says, and ignores everything else', () => {
    const linked = {
      ...{ 'connection.closed': 'parted', 'connection fails': 'parted', close: 'linked.draining' },
      ...{ address: 'linked.connecting', 'connection.up': 'linked.online', 'connection.down': 'linked.offline' },
    };
    const { address: _, ...connecting } = linked;
    const { 'connection.up': _up, ...online } = linked;
    const { 'connection.down': _down, ...offline } = linked;
    expect(reactions(steps)).toEqual({
      unaddressed: { address: 'linked.connecting', close: 'closed' },
      'linked.connecting': connecting,
      'linked.online': online,
      'linked.offline': offline,
      'linked.draining': {
        ...{ 'connection.down': 'closed', 'connection.closed': 'closed', 'connection fails': 'closed' },
        ...{ 'after drain': 'closed' },
      },
      parted: { address: 'linked.connecting', 'after retry': 'linked.connecting', close: 'closed' },
    });
    expect(statesOf(steps)).toHaveLength(7);
  });

  it('makes a new connection when it has none or the address is news, and only then', () => {
    for (const step of steps) {
      const { from, event, to } = step;
      const isNews = event.type === 'address' && event.url !== from.context.url;
      const links = isLinked(stateOf(from)) ? isNews && stateOf(from) !== 'linked.draining' : isLinked(stateOf(to));
      const name = `${stateOf(from)} + ${event.type}`;
      expect(begun(step), name).toEqual(links ? ['connection'] : []);
      expect(Object.keys(to.children), name).toEqual(isLinked(stateOf(to)) ? ['connection'] : []);
      const spawn = step.effects.find(({ type }) => type === 'xstate.spawnChild');
      if (spawn) expect(spawn.params.input, name).toEqual({ url: to.context.url });
    }
  });

  it('remembers the newest address until it is told to close', () => {
    for (const { from, event, to } of steps) {
      const listens = event.type === 'address' && stateOf(from) !== 'linked.draining';
      expect(to.context.url).toBe(listens ? event.url : from.context.url);
    }
  });

  it('says why it is offline, until it is online', () => {
    const said: Record<string, string> = {
      'connection.down': 'disconnected',
      'connection.closed': 'closed by the server',
      'connection fails': 'it broke',
    };
    for (const { from, event, to } of steps) {
      const isHeard = isLinked(stateOf(from)) && stateOf(from) !== 'linked.draining';
      const news = event.type === 'connection.up' ? '' : said[plain(event.type)];
      expect(to.context.why).toBe(isHeard && news !== undefined ? news : from.context.why);
    }
  });

  it('drains once, and sets its timers from its spec', () => {
    for (const step of steps) {
      const [from, to] = [stateOf(step.from), stateOf(step.to)];
      const entersDraining = to === 'linked.draining' && from !== to;
      expect(told(step)).toEqual(entersDraining ? ['connection:drain'] : []);
      const timer = entersDraining ? { 'after drain': 2_000 } : {};
      expect(timers(step)).toEqual(to === 'parted' && from !== to ? { 'after retry': 500 } : timer);
    }
  });
});

function stage(open: (say: (event: BusEvent) => void, url: string) => void) {
  const clock = new SimulatedClock();
  const heard: string[] = [];
  let say: (event: BusEvent) => void = () => {};
  const connection = fromCallback<ToBusConnection, { url: string }>(({ sendBack, receive, input }) => {
    heard.push(`open ${input.url}`);
    say = sendBack as typeof say;
    receive(({ type }) => heard.push(type));
    open(say, input.url);
    return () => heard.push(`ended ${input.url}`);
  });
  const actor = createActor(busMachine.provide({ actors: { connection } }), { input: spec, clock }).start();
  return { actor, clock, heard, say: (e: BusEvent) => say(e), state: () => stateOf(actor.getSnapshot()) };
}

it('reconnects for ever while every connection closes at once', () => {
  const { actor, clock, heard, state } = stage((say) => say({ type: 'connection.closed', why: 'refused' }));
  actor.send({ type: 'address', url: 'nats://one' });
  for (let attempt = 1; attempt <= 50; attempt += 1) {
    expect([state(), heard.filter((word) => word.startsWith('open')).length]).toEqual(['parted', attempt]);
    clock.increment(499);
    expect(state()).toBe('parted');
    clock.increment(1);
  }
});

it('keeps its connection when told the same address again, and moves to a new one', () => {
  const { actor, heard, state } = stage((say) => say({ type: 'connection.up' }));
  actor.send({ type: 'address', url: 'nats://one' });
  actor.send({ type: 'address', url: 'nats://one' });
  expect([state(), heard]).toEqual(['linked.online', ['open nats://one']]);
  actor.send({ type: 'address', url: 'nats://two' });
  expect([state(), heard]).toEqual(['linked.online', ['open nats://one', 'ended nats://one', 'open nats://two']]);
});

it('waits for its last answers to go out before it closes, but not for ever', () => {
  const { actor, clock, heard, state } = stage((say) => say({ type: 'connection.up' }));
  actor.send({ type: 'address', url: 'nats://one' });
  actor.send({ type: 'close' });
  clock.increment(1_999);
  expect([state(), heard]).toEqual(['linked.draining', ['open nats://one', 'drain']]);
  clock.increment(1);
  expect([state(), heard.at(-1)]).toEqual(['closed', 'ended nats://one']);
});
