// A host's session: it exists only once it is on the disk, and nobody being there makes it leave the memory.

import { describe, expect, it } from 'vitest';
import { createActor, SimulatedClock } from 'xstate';
import { type SessionEvent, type SessionSpec, sessionMachine } from '../../machines/session.ts';
import { everyStep, reactions, stateOf, statesOf } from '../support/paths.ts';

const spec: SessionSpec = { restMs: 1_000, idleMs: 10_000 };
const samples: SessionEvent[] = [
  { type: 'committed' },
  { type: 'refused' },
  { type: 'came' },
  { type: 'left', mustStay: false },
  { type: 'left', mustStay: true },
  { type: 'ended' },
];

describe('in every reachable configuration', () => {
  const steps = everyStep(sessionMachine, spec, samples);

  it('moves as this table says, and ignores everything else', () => {
    expect(reactions(steps)).toEqual({
      opening: { committed: 'open', refused: 'closed', ended: 'closed' },
      open: { left: 'detached', ended: 'closed' },
      detached: { came: 'open', ended: 'closed', 'after rest': expect.anything(), 'after idle': 'released' },
    });
    expect(statesOf(steps).sort()).toEqual(['closed', 'detached', 'open', 'opening', 'released']);
  });

  it('never leaves the memory while something depends on it', () => {
    for (const { from, event, to } of steps)
      if (stateOf(to) === 'released' && !event.type.includes('idle'))
        expect([stateOf(from), from.context.mustStay]).toEqual(['detached', false]);
  });
});

describe('a session that nobody uses', () => {
  const story = (mustStay: boolean) => {
    const clock = new SimulatedClock();
    const actor = createActor(sessionMachine, { input: spec, clock }).start();
    actor.send({ type: 'committed' });
    actor.send({ type: 'left', mustStay });
    return { actor, clock, state: () => actor.getSnapshot().value };
  };

  it('leaves the memory after a rest', () => {
    const { clock, state } = story(false);
    clock.increment(999);
    expect(state()).toBe('detached');
    clock.increment(1);
    expect(state()).toBe('released');
  });

  it('stays much longer when something depends on it', () => {
    const { clock, state } = story(true);
    clock.increment(9_999);
    expect(state()).toBe('detached');
    clock.increment(1);
    expect(state()).toBe('released');
  });

  it('begins its rest anew when somebody came in between', () => {
    const { actor, clock, state } = story(false);
    clock.increment(900);
    actor.send({ type: 'came' });
    actor.send({ type: 'left', mustStay: false });
    clock.increment(900);
    expect(state()).toBe('detached');
  });
});
