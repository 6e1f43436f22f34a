// The machines of asks: the ladder of those who are asked, one answer that counts, and an end for every question.

import { describe, expect, it } from 'vitest';
import { createActor, SimulatedClock } from 'xstate';
import { approvalMachine } from '../../machines/approval.ts';
import { elicitationMachine } from '../../machines/elicitation.ts';
import { samplingMachine } from '../../machines/sampling.ts';
import { everyStep, reactions, statesOf } from '../support/paths.ts';

const times = { patienceMs: 1_000, expiryMs: 10_000 };
const LADDER = [
  { type: 'opened' },
  { type: 'host.passed' },
  { type: 'bus.passed' },
  { type: 'rule.passed' },
  { type: 'withdrawn' },
] as const;
const SAID = [{ type: 'accepted' }, { type: 'declined' }, { type: 'cancelled' }] as const;

describe('an elicitation', () => {
  const samples = [...LADDER, ...SAID, { type: 'completed' } as const];
  const said = { declined: 'declined', cancelled: 'cancelled', withdrawn: 'withdrawn', 'after expiry': 'expired' };

  it('of a form moves as this table says, and ignores everything else', () => {
    const open = { ...said, accepted: 'accepted', completed: 'completed' };
    const steps = everyStep(elicitationMachine, { ...times, mode: 'form' }, samples);
    expect(reactions(steps)).toEqual({
      'open.opening': { ...open, opened: 'open.host' },
      'open.host': { ...open, 'host.passed': 'open.bus', 'after patience': 'open.bus' },
      'open.bus': { ...open, 'bus.passed': 'open.rule' },
      'open.rule': { ...open, 'rule.passed': 'open.inbox' },
      'open.inbox': open,
    });
  });

  it('of an address stays open after the consent, until what happens there is done', () => {
    const open = { ...said, accepted: 'open.consented', completed: 'completed' };
    const steps = everyStep(elicitationMachine, { ...times, mode: 'url' }, samples);
    expect(reactions(steps)).toMatchObject({
      'open.inbox': open,
      'open.consented': { ...said, completed: 'completed' },
    });
    expect(statesOf(steps)).not.toContain('accepted');
  });
});

describe('sampling', () => {
  const samples = [
    ...LADDER,
    ...([{ type: 'answered' }, { type: 'rejected' }, { type: 'approved' }] as const),
    ...([{ type: 'generated' }, { type: 'failed' }] as const),
  ];
  const open = { answered: 'answered', rejected: 'rejected', withdrawn: 'withdrawn', 'after expiry': 'expired' };
  const stepsOf = (isTrusted: boolean, hasModel: boolean) =>
    everyStep(samplingMachine, { ...times, isTrusted, hasModel }, samples);

  it('without a model of ours waits for a person', () => {
    expect(reactions(stepsOf(false, false))).toEqual({
      'open.opening': { ...open, opened: 'open.host' },
      'open.host': { ...open, 'host.passed': 'open.bus', 'after patience': 'open.bus' },
      'open.bus': { ...open, 'bus.passed': 'open.rule' },
      'open.rule': { ...open, 'rule.passed': 'open.inbox' },
      'open.inbox': open,
    });
  });

  it('is seen by a person before a model hears it and before the server does', () => {
    expect(reactions(stepsOf(false, true))).toMatchObject({
      'open.rule': { ...open, 'rule.passed': 'open.reviewing' },
      'open.reviewing': { ...open, approved: 'open.generating' },
      'open.generating': { ...open, generated: 'open.checking', failed: 'open.inbox' },
      'open.checking': { ...open, approved: 'answered' },
    });
  });

  it('of a trusted server is seen by nobody, unless the model fails', () => {
    const steps = stepsOf(true, true);
    expect(reactions(steps)).toMatchObject({
      'open.rule': { 'rule.passed': 'open.generating' },
      'open.generating': { answered: 'answered', failed: 'open.inbox' },
    });
    expect(statesOf(steps)).not.toContain('open.reviewing');
  });

  it('stops generating whichever way it leaves', () => {
    const stopped: string[] = [];
    for (const type of ['answered', 'rejected', 'withdrawn', 'failed'] as const) {
      const stopGenerating = () => stopped.push(type);
      const machine = samplingMachine.provide({ actions: { stopGenerating } });
      const actor = createActor(machine, { input: { ...times, isTrusted: true, hasModel: true } }).start();
      for (const event of LADDER.slice(0, 4)) actor.send(event);
      expect(actor.getSnapshot().value).toEqual({ open: 'generating' });
      actor.send({ type });
    }
    expect(stopped).toEqual(['answered', 'rejected', 'withdrawn', 'failed']);
  });
});

describe('an approval', () => {
  it('moves as this table says: everything but a yes is a no', () => {
    const open = {
      ...{ accepted: 'approved', declined: 'denied', cancelled: 'denied' },
      ...{ withdrawn: 'withdrawn', 'after expiry': 'expired' },
    };
    expect(reactions(everyStep(approvalMachine, times, [...LADDER, ...SAID]))).toEqual({
      'open.opening': { ...open, opened: 'open.host' },
      'open.host': { ...open, 'host.passed': 'open.bus', 'after patience': 'open.bus' },
      'open.bus': { ...open, 'bus.passed': 'open.rule' },
      'open.rule': { ...open, 'rule.passed': 'open.inbox' },
      'open.inbox': open,
    });
  });
});

describe('time', () => {
  const story = () => {
    const clock = new SimulatedClock();
    const outcomes: string[] = [];
    const conclude = (_: unknown, outcome: string) => outcomes.push(outcome);
    const machine = elicitationMachine.provide({ actions: { conclude } });
    const actor = createActor(machine, { input: { ...times, mode: 'url' }, clock }).start();
    return { actor, clock, outcomes, state: () => actor.getSnapshot().value };
  };

  it('moves the ladder on when a host does not answer, without forgetting the host', () => {
    const { actor, clock, state } = story();
    actor.send({ type: 'opened' });
    clock.increment(999);
    expect(state()).toEqual({ open: 'host' });
    clock.increment(1);
    expect(state()).toEqual({ open: 'bus' });
    actor.send({ type: 'declined' }); // the host, after all
    expect(state()).toBe('declined');
  });

  it('ends every question, also one that never came as far as the disk', () => {
    const { clock, outcomes, state } = story();
    clock.increment(10_000);
    expect([state(), outcomes]).toEqual(['expired', ['expired']]);
  });

  it('is not given twice to whoever has agreed', () => {
    const { actor, clock, outcomes, state } = story();
    actor.send({ type: 'opened' });
    clock.increment(9_000);
    actor.send({ type: 'accepted' });
    expect(state()).toEqual({ open: 'consented' });
    clock.increment(1_000);
    expect([state(), outcomes]).toEqual(['expired', ['expired']]);
  });
});
