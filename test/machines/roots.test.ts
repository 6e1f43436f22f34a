// What a server is told of roots: every change, never two at once, and nothing after its connection is gone.

import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { type RootsEvent, rootsMachine } from '../../machines/roots.ts';
import { begun, everyStep, reactions, stateOf, statesOf, timers } from '../support/paths.ts';

const spec = { gatherMs: 100, askMs: 500 };
const types = ['changed', 'asked', 'hurry', 'connection.closed'] as const;
const samples: RootsEvent[] = types.map((type) => ({ type }));

describe('in every reachable configuration', () => {
  const steps = everyStep(rootsMachine, spec, samples);

  it('moves as this table says, and ignores everything else', () => {
    const closed = { 'connection.closed': 'ended' };
    expect(reactions(steps)).toEqual({
      quiet: { changed: 'gathering', ...closed },
      gathering: { asked: 'quiet', hurry: 'telling', 'after gather': 'telling', ...closed },
      telling: { 'port done': 'gathering | quiet | told', 'port fails': 'gathering | quiet', ...closed },
      told: { changed: 'gathering', asked: 'quiet', 'after ask': 'quiet', ...closed },
    });
    expect(statesOf(steps)).toEqual(['ended', 'gathering', 'quiet', 'telling', 'told']);
  });

  it('tells only after it has gathered, and each time anew', () => {
    for (const step of steps) {
      const isEntry = stateOf(step.from) === 'gathering' && stateOf(step.to) === 'telling';
      expect(begun(step)).toEqual(isEntry ? ['tell'] : []);
    }
  });

  it('gathers for as long as it was told to', () => {
    for (const step of steps)
      if (stateOf(step.from) !== 'gathering' && stateOf(step.to) === 'gathering')
        expect(timers(step)).toEqual({ 'after gather': 100 });
  });

  it('remembers a change that comes while it tells, unless the server has asked since', () => {
    const telling = steps.filter(({ from }) => stateOf(from) === 'telling');
    expect(new Set(telling.map(({ from }) => from.context.isStale))).toEqual(new Set([true, false]));
    for (const { from, event, to } of telling) {
      if (event.type === 'changed') expect(to.context.isStale).toBe(true);
      if (event.type === 'asked') expect(to.context.isStale).toBe(false);
      if (/^xstate\.(done|error)/.test(event.type)) expect(stateOf(to) === 'gathering').toBe(from.context.isStale);
    }
  });

  it('expects a question of a server that has asked before, and not since it is being told', () => {
    for (const { from, event, to } of steps) {
      if (event.type === 'asked' && stateOf(to) !== 'ended')
        expect(to.context).toMatchObject({ isCurious: true, isExpected: false });
      if (stateOf(to) === 'telling' && stateOf(from) !== 'telling')
        expect(to.context.isExpected).toBe(from.context.isCurious);
      if (/^xstate\.done/.test(event.type) && !from.context.isStale)
        expect(stateOf(to)).toBe(from.context.isExpected ? 'told' : 'quiet');
    }
  });

  it('begins to tell with nothing to repeat', () => {
    for (const { from, to } of steps)
      if (stateOf(from) === 'gathering' && stateOf(to) === 'telling') expect(to.context.isStale).toBe(false);
  });
});

describe('a server', () => {
  function story() {
    const clock = new SimulatedClock();
    const telling: { done(): void; fail(): void }[] = [];
    const tell = fromPromise<void>(
      () =>
        new Promise((resolve, reject) => {
          telling.push({ done: resolve, fail: () => reject(new Error('it is gone')) });
        }),
    );
    const actor = createActor(rootsMachine.provide({ actors: { tell } }), { input: spec, clock }).start();
    actor.subscribe({ error: () => {} }); // an error would show in the state
    return {
      actor,
      clock,
      telling,
      state: () => actor.getSnapshot().value,
      changed: () => actor.send({ type: 'changed' }),
    };
  }
  const settled = () => new Promise(setImmediate);

  it('is told once of what changes within the time of gathering', () => {
    const { clock, telling, changed } = story();
    changed();
    clock.increment(60);
    changed();
    clock.increment(39);
    expect(telling).toHaveLength(0);
    clock.increment(1);
    expect(telling).toHaveLength(1);
  });

  it('is told again of what changes while it is being told', async () => {
    const { clock, telling, changed, state } = story();
    changed();
    clock.increment(100);
    changed();
    telling[0]?.done();
    await settled();
    expect(state()).toBe('gathering');
    clock.increment(100);
    expect(telling).toHaveLength(2);
    telling[1]?.fail();
    await settled();
    expect(state()).toBe('quiet');
  });

  it('is not told of what it has just asked for', () => {
    const { actor, clock, telling, changed } = story();
    changed();
    actor.send({ type: 'asked' });
    clock.increment(1_000);
    expect(telling).toHaveLength(0);
  });

  it('is told at once when somebody waits, and may take so long to ask', async () => {
    const { actor, clock, telling, changed, state } = story();
    actor.send({ type: 'asked' });
    changed();
    actor.send({ type: 'hurry' });
    expect(telling).toHaveLength(1);
    telling[0]?.done();
    await settled();
    clock.increment(499);
    expect(state()).toBe('told');
    clock.increment(1);
    expect(state()).toBe('quiet');
  });

  it('is told nothing once its connection is closed', () => {
    const { actor, clock, telling, changed, state } = story();
    changed();
    actor.send({ type: 'connection.closed' });
    clock.increment(1_000);
    expect([state(), telling.length]).toEqual(['ended', 0]);
  });
});
