// A host's session: it exists only once it is on the disk, it is in memory while somebody is there and for a while after, and
// its row shows that it is used. Every rule is checked on every path, and notices if the chart loses any one action.

import { describe, expect, it } from 'vitest';
import { type AnyStateMachine, createMachine } from 'xstate';
import { type SessionEffect, type SessionEvent, sessionMachine } from '../../machines/session.ts';
import { everyStep, reactions, type Step, stateOf, statesOf } from '../support/paths.ts';

const EVENTS = [
  ...['open', 'found', 'end', 'stop', 'row.committed', 'row.refused', 'row.ended'],
  ...['came', 'left', 'used', 'rested', 'needed', 'idled'],
] as SessionEvent['type'][];
const samples = EVENTS.map((type) => ({ type }));
const walk = (machine: AnyStateMachine): Step[] => everyStep(machine, undefined as never, samples);
const effectsOf = ({ effects }: Step): SessionEffect[] => effects.map(({ type }) => type as SessionEffect);

describe('in every reachable configuration', () => {
  it('moves as this table says, and ignores everything else', () => {
    const anytime = { 'row.ended': 'closed', stop: 'absent' };
    expect(reactions(walk(sessionMachine))).toEqual({
      absent: { open: 'opening', found: 'resident.detached' },
      opening: { 'row.committed': 'resident.detached', 'row.refused': 'closed' },
      'resident.open': { left: 'resident.detached', ...anytime },
      'resident.detached': { came: 'resident.open', needed: 'resident.retained', rested: 'absent', ...anytime },
      'resident.retained': { came: 'resident.open', idled: 'absent', ...anytime },
    });
    expect(statesOf(walk(sessionMachine))).toEqual(
      ['absent', 'closed', 'opening', 'resident.detached', 'resident.open', 'resident.retained'].sort(),
    );
  });

  it('keeps its rules', () => {
    expect(violations(sessionMachine)).toEqual([]);
  });
});

describe('rules that can fail', () => {
  it.each(mutants())('notice a chart without %s', (_, mutant) => {
    expect(violations(mutant)).not.toEqual([]);
  });
});

/** What one step did to the world, and what must be true of it. */
type Rule = readonly [sentence: string, holds: (done: Done) => boolean];
type Done = {
  readonly from: string;
  readonly event: string;
  readonly to: string;
  readonly did: readonly SessionEffect[];
  readonly count: (effect: SessionEffect) => number;
};

const TIMER_OF: Record<string, SessionEffect> = {
  'resident.open': 'startUse',
  'resident.detached': 'startRest',
  'resident.retained': 'startIdle',
};
const isIn = (state: string) => state.startsWith('resident');
const isOnce = (count: number, must: boolean) => count === (must ? 1 : 0);
const isInOrder = ({ did }: Done, ...order: SessionEffect[]) => {
  const seen = did.filter((effect) => order.includes(effect));
  return seen.every((effect, at) => at === 0 || order.indexOf(seen[at - 1] as SessionEffect) < order.indexOf(effect));
};

const RULES: Rule[] = [
  [
    'its row is added when it is opened',
    ({ event, to, count }) => isOnce(count('addRow'), event === 'open' && to === 'opening'),
  ],
  [
    'its row is ended whenever the daemon wants it, if a row may be there',
    ({ from, event, count }) => isOnce(count('endRow'), event === 'end' && from !== 'opening'),
  ],
  [
    'it can be found exactly while it is in memory',
    ({ from, to, count }) => isOnce(count('enlist'), !isIn(from) && isIn(to)),
  ],
  ['it cannot be found once it has left', ({ from, to, count }) => isOnce(count('delist'), isIn(from) && !isIn(to))],
  [
    'what the row remembers is taken up when it was found',
    ({ event, to, count }) => isOnce(count('restore'), event === 'found' && isIn(to)),
  ],
  [
    'it is disposed of when it leaves, unless its daemon does too',
    ({ from, event, to, count }) =>
      isOnce(count('dispose'), from !== to && (to === 'closed' || to === 'absent') && event !== 'stop'),
  ],
  [
    'its roots go with it, and no sooner',
    ({ from, to, count }) => isOnce(count('dropRoots'), isIn(from) && to === 'closed'),
  ],
  [
    'who listens hears that it has ended',
    ({ from, to, count }) => isOnce(count('tellEnded'), isIn(from) && to === 'closed'),
  ],
  [
    'use is noted while it is used and when the last has left',
    ({ from, event, count }) =>
      isOnce(count('noteUse'), from === 'resident.open' && ['left', 'used', 'stop'].includes(event)),
  ],
  [
    'use is saved when the daemon stops',
    ({ from, event, count }) => isOnce(count('saveUse'), isIn(from) && event === 'stop'),
  ],
  [
    'each state in memory has its timer, set when it begins',
    ({ from, event, to, count }) =>
      Object.entries(TIMER_OF).every(([state, start]) =>
        isOnce(count(start), to === state && (from !== to || event === 'used')),
      ),
  ],
  ['no timer is left when it has left', ({ from, to, count }) => isOnce(count('stopTimer'), isIn(from) && !isIn(to))],
  [
    'it is not found any more before its calls are cancelled, and all is done before it is told',
    (done) => isInOrder(done, 'delist', 'dispose', 'dropRoots', 'tellEnded'),
  ],
  ['use is noted before it is saved', (done) => isInOrder(done, 'noteUse', 'saveUse')],
];

function violations(machine: AnyStateMachine): string[] {
  return walk(machine).flatMap((step) => {
    const did = effectsOf(step);
    const count = (effect: SessionEffect) => did.filter((each) => each === effect).length;
    const done: Done = { from: stateOf(step.from), event: step.event.type, to: stateOf(step.to), did, count };
    const isKnown = done.from !== done.to || did.length > 0;
    const broken = RULES.filter(([, holds]) => (isKnown || mustReact(done)) && !holds(done));
    return broken.map(([sentence]) => `${done.from} + ${done.event} → ${done.to} [${did.join()}]: ${sentence}`);
  });
}

/** Where an event that leads nowhere must still do something. */
const mustReact = ({ from, event }: Done) =>
  (event === 'end' && from !== 'opening' && from !== 'closed') || (event === 'used' && from === 'resident.open');

/** The chart without one of its actions, for each of them. */
function mutants(): [string, AnyStateMachine][] {
  const found: [string, AnyStateMachine][] = [];
  const visit = (path: readonly string[], value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (!['actions', 'entry', 'exit'].includes(key)) visit([...path, key], inner);
      else
        for (const [at, action] of [inner].flat().entries())
          found.push([
            `${action} in ${path.filter((each) => each !== 'states').join('.')}`,
            without([...path, key], at),
          ]);
    }
  };
  visit([], sessionMachine.config);
  return found;
}

function without(path: readonly string[], at: number): AnyStateMachine {
  const config = structuredClone(sessionMachine.config) as any;
  const owner = path.slice(0, -1).reduce((object, key) => object[key], config);
  const key = path.at(-1) as string;
  owner[key] = [owner[key]].flat().filter((_, index) => index !== at);
  return createMachine(config, sessionMachine.implementations as never);
}
