// The NATS server we use: one that we run is restarted for ever, one that is missing is looked for again.
// First every configuration, then stories on a simulated clock.

import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, fromPromise, initialTransition, SimulatedClock, waitFor } from 'xstate';
import {
  type BrokerEvent,
  type BrokerSpec,
  brokerMachine,
  type Located,
  type ToProcess,
} from '../../machines/broker.ts';
import { begun, everyStep, plain, reactions, stateOf, statesOf, timers, told } from '../support/paths.ts';

const spec: BrokerSpec = { backoffMs: [100, 400], retryMs: 5_000, closeMs: 3_000, settleMs: 60_000 };
const located = (binary: string | undefined) => ({ type: 'xstate.done.actor.locate', output: { binary } });
const samples = [
  { type: 'start' },
  { type: 'stop' },
  { type: 'process.ready' },
  { type: 'process.exited', why: 'exit 1' },
  located('/bin/nats-server'),
  located(undefined),
];

describe('in every reachable configuration', () => {
  // Beyond the end of the backoff list, one more restart changes nothing.
  const key = ({ value, context: { binary, restarts, why } }: any) => [value, binary, Math.min(restarts, 3), why];
  const steps = everyStep(brokerMachine, spec, samples, key);
  const isUp = (state: string) => state.startsWith('up.');
  const name = ({ from, event }: (typeof steps)[number]) => `${stateOf(from)} + ${event.type}`;

  it('begins idle', () => {
    const [first] = initialTransition(brokerMachine, spec);
    expect([stateOf(first), first.context]).toEqual(['idle', { spec, binary: '', restarts: 0, why: '' }]);
  });

  it('moves as this table says, and ignores everything else', () => {
    const died = { 'process.exited': 'waiting', 'process fails': 'waiting' };
    expect(reactions(steps)).toEqual({
      idle: { start: 'locating', stop: 'stopped' },
      locating: { 'locate done': 'external | up.starting', 'locate fails': 'missing', stop: 'stopped' },
      external: { stop: 'stopped' },
      missing: { 'after retry': 'locating', start: 'locating', stop: 'stopped' },
      'up.starting': { 'process.ready': 'up.running', stop: 'up.closing', ...died },
      'up.running': { stop: 'up.closing', ...died },
      'up.closing': { 'process.exited': 'stopped', 'process fails': 'stopped', 'after close': 'stopped' },
      waiting: { 'after backoff': 'locating', start: 'locating', stop: 'stopped' },
    });
    expect(statesOf(steps)).toHaveLength(9);
  });

  it('runs the binary that was found, and nothing when the bus is somebody else’s', () => {
    for (const step of steps) {
      const { from, event, to, effects } = step;
      const isFound = stateOf(from) === 'locating' && event.type === 'xstate.done.actor.locate';
      const isOurs = isFound && event.output.binary !== undefined;
      expect(Object.keys(to.children)).toEqual(
        isUp(stateOf(to)) ? ['process'] : stateOf(to) === 'locating' ? ['locate'] : [],
      );
      const seeks = stateOf(to) === 'locating' && stateOf(from) !== 'locating';
      expect(begun(step), name(step)).toEqual(isOurs ? ['process'] : seeks ? ['locate'] : []);
      if (isFound) expect(stateOf(to)).toBe(isOurs ? 'up.starting' : 'external');
      if (isOurs) expect(to.context.binary).toBe('/bin/nats-server');
      const run = effects.find(({ type, params }) => type === 'xstate.spawnChild' && params.src === 'process');
      if (run) expect(run.params.input).toEqual({ binary: '/bin/nats-server' });
    }
  });

  it('counts a restart when the process dies, and forgets them all once it has run for long', () => {
    for (const step of steps) {
      const { from, event, to } = step;
      const dies = stateOf(to) === 'waiting' && stateOf(from) !== 'waiting';
      const settled = plain(event.type) === 'after settle' && stateOf(from) === 'up.running';
      const { restarts } = from.context;
      expect(to.context.restarts, name(step)).toBe(settled ? 0 : restarts + (dies ? 1 : 0));
    }
  });

  it('says why there is none, until there is one', () => {
    const said: Record<string, string> = {
      'process.exited': 'exit 1',
      'process fails': 'it broke',
      'locate fails': 'it broke',
    };
    for (const step of steps) {
      const [from, to] = [stateOf(step.from), stateOf(step.to)];
      const isNews = to !== from && (to === 'waiting' || to === 'missing');
      const isWell = (to === 'external' || to === 'up.running') && to !== from;
      const why = isNews ? said[plain(step.event.type)] : isWell ? '' : step.from.context.why;
      expect(step.to.context.why, name(step)).toBe(why);
    }
  });

  it('asks the process to stop once, and sets its timers from its spec', () => {
    const waits: Record<string, Record<string, number>> = {
      missing: { 'after retry': 5_000 },
      'up.running': { 'after settle': 60_000 },
      'up.closing': { 'after close': 3_000 },
    };
    for (const step of steps) {
      const to = stateOf(step.to);
      const enters = to !== stateOf(step.from);
      expect(told(step), name(step)).toEqual(enters && to === 'up.closing' ? ['process:stop'] : []);
      const waiting = { 'after backoff': step.to.context.restarts === 1 ? 100 : 400 };
      expect(timers(step), name(step)).toEqual((enters && (to === 'waiting' ? waiting : waits[to])) || {});
    }
  });
});

function stage(locate: () => Promise<Located>, given = spec) {
  const clock = new SimulatedClock();
  const heard: string[] = [];
  let say: (event: BrokerEvent) => void = () => {};
  const process = fromCallback<ToProcess, { binary: string }>(({ sendBack, receive, input }) => {
    heard.push(`run ${input.binary}`);
    say = sendBack as typeof say;
    receive(({ type }) => heard.push(type));
    return () => heard.push('ended');
  });
  const machine = brokerMachine.provide({ actors: { locate: fromPromise<Located>(locate), process } });
  const actor = createActor(machine, { input: given, clock }).start();
  const reaches = (state: string) => waitFor(actor, (snapshot) => stateOf(snapshot) === state);
  return { actor, clock, heard, reaches, say: (e: BrokerEvent) => say(e), state: () => stateOf(actor.getSnapshot()) };
}

it('restarts a crashing broker for ever, ever more slowly, and forgives it once it has settled', async () => {
  const { actor, clock, reaches, say, state, heard } = stage(async () => ({ binary: 'nats' }));
  actor.send({ type: 'start' });
  for (const wait of [100, 400, 400, 400, 400, 400, 400, 400]) {
    await reaches('up.starting');
    say({ type: 'process.exited', why: 'exit 1' });
    clock.increment(wait - 1);
    expect(state()).toBe('waiting');
    clock.increment(1);
  }
  await reaches('up.starting');
  say({ type: 'process.ready' });
  clock.increment(60_000);
  say({ type: 'process.exited', why: 'exit 1' });
  clock.increment(100);
  expect(state()).toBe('locating');
  expect(heard.filter((word) => word === 'ended')).toHaveLength(9);
});

it('does not wait between restarts when no backoff is given', async () => {
  const { actor, clock, reaches, say, state } = stage(async () => ({ binary: 'nats' }), { ...spec, backoffMs: [] });
  actor.send({ type: 'start' });
  await reaches('up.starting');
  say({ type: 'process.exited', why: 'exit 1' });
  clock.increment(0);
  expect(state()).toBe('locating');
});

it('looks again for a broker that could not be had, and stops the one it has politely', async () => {
  let attempts = 0;
  const { actor, clock, reaches, say, heard, state } = stage(async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('nats-server is not installed');
    return { binary: 'nats' };
  });
  actor.send({ type: 'start' });
  const { context } = await reaches('missing');
  expect(context.why).toBe('Error: nats-server is not installed');
  clock.increment(5_000);
  await reaches('up.starting');
  say({ type: 'process.ready' });
  actor.send({ type: 'stop' });
  expect([state(), heard]).toEqual(['up.closing', ['run nats', 'stop']]);
  clock.increment(3_000);
  expect([state(), heard]).toEqual(['stopped', ['run nats', 'stop', 'ended']]);
});
