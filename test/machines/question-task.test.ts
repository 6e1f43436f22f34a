// A question that its server asked as a task: the server hears of the task first and of its end next, or that there is none;
// whoever waits for the end is told once.

import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { type AnyStateMachine, setup } from 'xstate';
import { questionTaskMachine } from '../../machines/question-task.ts';
import { mutantsOf } from '../support/mutants.ts';
import { everyStep, type Step, stateOf } from '../support/paths.ts';

const end = (how: string) => ({ how, answer: {}, at: 1 });
const samples = [
  { type: 'recorded' },
  { type: 'unrecorded', end: end('cancelled') },
  { type: 'ended', end: end('completed') },
  { type: 'cancelled', end: end('cancelled') },
];

function tableOf(steps: readonly Step[]): Record<string, Record<string, string>> {
  const table: Record<string, Record<string, string>> = {};
  for (const { from, event, to, effects } of steps) {
    const row = table[stateOf(from)] ?? {};
    table[stateOf(from)] = row;
    const how = to.context.end === from.context.end ? [] : [`as ${to.context.end?.how}`];
    if (from !== to) row[event.type] = [stateOf(to), ...effects.map(({ type }) => type), ...how].join(', ');
  }
  return table;
}

const TABLE = {
  recording: {
    recorded: 'working, tellCreated',
    unrecorded: 'refused, drop, settle, withdrawQuestion, refuse, as cancelled',
    ended: 'endedEarly, settle, as completed',
    cancelled: 'refused, settle, withdrawQuestion, refuse, as cancelled',
  },
  working: {
    ended: 'ended, settle, tellStatus, as completed',
    cancelled: 'ended, settle, tellStatus, withdrawQuestion, as cancelled',
  },
  endedEarly: {
    recorded: 'ended, tellCreated, tellStatus',
    unrecorded: 'refused, drop, refuse',
    cancelled: 'refused, refuse',
  },
};

it('does in every state as this table says, and ignores everything else', () => {
  expect(tableOf(everyStep(questionTaskMachine, undefined as never, samples))).toEqual(TABLE);
});

it('nothing can be left out: without any one action or reaction the table is wrong', () => {
  const { actions } = questionTaskMachine.implementations;
  const unnoticed = mutantsOf(questionTaskMachine).filter(({ config }) => {
    const crippled = setup({ actions: actions as any }).createMachine(config) as AnyStateMachine;
    return isDeepStrictEqual(tableOf(everyStep(crippled, undefined as never, samples)), TABLE);
  });
  expect(unnoticed.map(({ without }) => without)).toEqual([]);
});
