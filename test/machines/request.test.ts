// One request: whatever happens to it, in whatever order, its caller is answered exactly once.
// The chart has no context, so every path through it can be written down.

import { expect, it } from 'vitest';
import { initialTransition } from 'xstate';
import { type RequestEvent, requestMachine } from '../../machines/request.ts';
import { everyStep, reactions, type Step, stateOf, statesOf } from '../support/paths.ts';

const types = ['dispatch', 'progress', 'result', 'error', 'cancel', 'deadline', 'gone'] as const;
const samples: RequestEvent[] = types.map((type) => ({ type }));
const steps = everyStep(requestMachine, undefined, samples);
const effects = (step: Step) => step.effects.map(({ type }) => type);
const isAnswer = (effect: string) => effect.startsWith('answer');

/** Every sequence of effective steps, up to three times round the loop that progress makes. */
function paths(from = 'queued', depth = 5): Step[][] {
  if (depth === 0) return [];
  return steps
    .filter((step) => stateOf(step.from) === from && (step.to !== step.from || step.effects.length > 0))
    .flatMap((step) => [[step], ...paths(stateOf(step.to), depth - 1).map((rest) => [step, ...rest])]);
}
const ended = paths().filter((path) => path.at(-1)?.to.status === 'done');

it('begins in the queue', () => {
  expect(stateOf(initialTransition(requestMachine)[0])).toBe('queued');
});

it('moves as this table says, and ignores everything else', () => {
  expect(reactions(steps)).toEqual({
    queued: { dispatch: 'sent', cancel: 'cancelled', deadline: 'timedOut', gone: 'refused' },
    sent: { result: 'answered', error: 'rejected', cancel: 'cancelled', deadline: 'timedOut', gone: 'lost' },
  });
  expect(statesOf(steps)).toHaveLength(8);
});

it('answers exactly once, on the step that ends it, and does nothing afterwards', () => {
  expect(ended.length).toBeGreaterThan(8);
  for (const path of paths()) {
    const answers = path.map((step) => effects(step).filter(isAnswer).length);
    const isOver = path.at(-1)?.to.status === 'done';
    expect(answers).toEqual(path.map((_, at) => (isOver && at === path.length - 1 ? 1 : 0)));
  }
  const finals = Object.values(requestMachine.states).filter(({ type }) => type === 'final');
  for (const state of [requestMachine.root, ...finals]) expect(state.transitions.size).toBe(0);
});

it('writes at most once, and cancels upstream only what was written', () => {
  for (const path of paths()) {
    const all = path.flatMap(effects);
    expect(all.filter((effect) => effect === 'write').length).toBeLessThanOrEqual(1);
    if (all.includes('cancelUpstream')) expect(all.indexOf('write')).toBeLessThan(all.indexOf('cancelUpstream'));
    if (all.includes('cancelUpstream')) expect(all).toContain('write');
    if (all.includes('write')) expect(path[0]?.event.type).toBe('dispatch');
  }
});

it('tells the server when nobody waits any more, before the caller hears of it', () => {
  const said = (event: string) => effects(steps.find((s) => stateOf(s.from) === 'sent' && s.event.type === event)!);
  expect(said('cancel')).toEqual(['cancelUpstream', 'answerCancelled']);
  expect(said('deadline')).toEqual(['cancelUpstream', 'answerTimeout']);
});

it('tells the caller what is known of the fate of the request, whether it was sent or not', () => {
  const fates = ended.map((path) => {
    const wasSent = path.flatMap(effects).includes('write') ? 'sent' : 'unsent';
    return `${wasSent} ${path.at(-1)?.event.type}: ${path.at(-1)?.to.value} ${effects(path.at(-1)!).find(isAnswer)}`;
  });
  expect([...new Set(fates)].sort()).toEqual([
    'sent cancel: cancelled answerCancelled',
    'sent deadline: timedOut answerTimeout',
    'sent error: rejected answerError',
    'sent gone: lost answerLost',
    'sent result: answered answerResult',
    'unsent cancel: cancelled answerCancelledUnsent',
    'unsent deadline: timedOut answerTimeoutUnsent',
    'unsent gone: refused answerUnsent',
  ]);
});

it('gives more time and passes progress on, as often as it comes, once the request was sent', () => {
  for (const step of steps.filter(({ event }) => event.type === 'progress')) {
    expect(effects(step)).toEqual(stateOf(step.from) === 'sent' ? ['extend', 'relay'] : []);
    expect(stateOf(step.to)).toBe(stateOf(step.from));
  }
  expect(steps.filter((step) => effects(step).includes('write')).map(({ event }) => event.type)).toEqual(['dispatch']);
});
