// A task moves as the diagram of MCP 2025-11-25 says, and in no other way.

import { describe, expect, it } from 'vitest';
import { createActor, transition } from 'xstate';
import { TASK_STATUSES, type TaskEvent, type TaskStatus, taskMachine } from '../../machines/task.ts';
import { everyStep, reactions, stateOf, statesOf } from '../support/paths.ts';

const EVENTS: TaskEvent[] = ['input.required', 'input.given', 'completed', 'failed', 'cancelled'].map(
  (type) => ({ type }) as TaskEvent,
);
const ENDINGS = { completed: 'completed', failed: 'failed', cancelled: 'cancelled' };

describe.each(['working', 'input_required'] as const)('a task whose row says %s', (status) => {
  const steps = everyStep(taskMachine, { status }, EVENTS);

  it('moves as the diagram says, and ignores everything else', () => {
    expect(reactions(steps)).toEqual({
      working: { 'input.required': 'input_required', ...ENDINGS },
      input_required: { 'input.given': 'working', ...ENDINGS },
    });
    expect(statesOf(steps)).toEqual([...TASK_STATUSES].sort());
  });

  it('never leaves a state in which it has ended', () => {
    const ended = steps.map(({ to }) => to).filter((to) => stateOf(to) in ENDINGS);
    expect(new Set(ended.map(stateOf))).toEqual(new Set(Object.keys(ENDINGS)));
    for (const snapshot of ended)
      for (const event of EVENTS) {
        const [next, effects] = transition(taskMachine, snapshot as never, event);
        expect([stateOf(next), effects]).toEqual([stateOf(snapshot), []]);
      }
  });

  it('begins where its row is, and shows each status once, in order', () => {
    const shown: TaskStatus[] = [];
    const machine = taskMachine.provide({ actions: { show: (_, each: TaskStatus) => void shown.push(each) } });
    const actor = createActor(machine, { input: { status } });
    actor.start();
    const other = status === 'working' ? 'input_required' : 'working';
    actor.send({ type: status === 'working' ? 'input.required' : 'input.given' });
    actor.send({ type: 'completed' });
    expect(shown).toEqual([status, other, 'completed']);
    expect(actor.getSnapshot().status).toBe('done');
  });
});
