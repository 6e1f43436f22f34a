// A chart and the table it is lowered to are one thing: side by side, in every state and under every event, they go to the
// same state and do the same.

import { expect, it } from 'vitest';
import { createMachine } from 'xstate';
import { lowered, type Row } from '../../machines/lowered.ts';
import { sessionMachine } from '../../machines/session.ts';
import { everyStep, stateOf } from '../support/paths.ts';

type Table = Row<string, string>;

/** Every row that can be reached, by its state. */
function rowsOf(first: Table): Map<string, Table> {
  const rows = new Map([[first.state, first]]);
  for (const row of rows.values())
    for (const step of Object.values(row.steps)) if (step) rows.set(step.next.state, step.next);
  return rows;
}

it('a session makes the same steps by its table as by its chart', () => {
  const rows = rowsOf(lowered(sessionMachine));
  const types = new Set([...rows.values()].flatMap(({ steps }) => Object.keys(steps)));
  const samples = [...types, 'unheard of'].map((type) => ({ type }));
  const walked = everyStep(sessionMachine, undefined as never, samples);
  for (const { from, event, to, effects } of walked) {
    const step = rows.get(stateOf(from))?.steps[event.type];
    const charted = [stateOf(to), ...effects.map(({ type }) => type)];
    expect(step ? [step.next.state, ...step.effects] : [stateOf(from)], `${stateOf(from)} + ${event.type}`).toEqual(
      charted,
    );
  }
  expect([...rows.keys()].sort()).toEqual(
    [...new Set(walked.flatMap(({ from, to }) => [stateOf(from), stateOf(to)]))].sort(),
  );
});

it('keeps actions of leaving, going and arriving in this order, and no step for what a state does not know', () => {
  const states = {
    a: { exit: 'left a', on: { go: { target: 'b.inner', actions: 'went' } } },
    b: { entry: 'came to b', initial: 'inner', states: { inner: { entry: 'came inside' } } },
  };
  const first = lowered<string, string>(createMachine({ initial: 'a', states }));
  expect(Object.keys(first.steps)).toEqual(['go']);
  expect(first.steps.go?.effects).toEqual(['left a', 'went', 'came to b', 'came inside']);
  expect(first.steps.go?.next).toMatchObject({ state: 'b.inner', isFinal: false, steps: {} });
});
