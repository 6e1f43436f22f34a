// What the chart of a task orders, state by state, and that the world sees of it exactly the lifecycle of MCP 2025-11-25.

import { describe, expect, it } from 'vitest';
import { createActor, type StateValue, transition } from 'xstate';
import { lowered, type Row } from '../../machines/lowered.ts';
import { statusOf, TASK_STATUSES, type TaskEffect, type TaskEvent, taskMachine } from '../../machines/task.ts';
import type { TaskEventType } from '../../src/tasks/owned-task.ts';
import { everyStep, type Step } from '../support/paths.ts';

type State = Row<TaskEventType, TaskEffect>;

const EVENTS = [
  ...['create', 'created.queued', 'created.dispatching', 'refused', 'taken', 'adopted.queued', 'adopted.followed'],
  ...['adopted.asking', 'reserve', 'answered', 'unsent', 'lost.followed', 'lost.rerun', 'signal', 'input.required'],
  ...['input.given', 'message', 'upstream', 'reserved', 'reserve.full', 'requeued', 'requeue.full', 'shown'],
  ...['show.full', 'ended.completed', 'ended.failed', 'ended.cancelled', 'end.full', 'released', 'row.lost', 'due'],
  ...['retry', 'reshow', 'cancel', 'cancelled', 'leave', 'leave.followed', 'broke'],
].map((type) => ({ type }) as TaskEvent);
const OVER = ['cancelled', 'completed', 'failed', 'lost', 'refused', 'released'];

const steps = everyStep(taskMachine, undefined as never, EVENTS);
const effectsOf = (step: Step) => step.effects.map(({ type }) => type as TaskEffect);
/** `queued`, or how it is over. */
const runOf = (value: StateValue): string => (typeof value === 'string' ? value : ((value.live as any).run as string));
const inputOf = (value: StateValue): string => (typeof value === 'string' ? '' : (value.live as any).input);
const isLeaving = (value: StateValue): boolean => typeof value !== 'string' && (value.live as any).daemon === 'leaving';

/** `reserve → reserving / writeReserved`: what happens in that state, without what happens in all. */
function reactionsIn(run: string, leaving = false): string[] {
  const here = steps.filter(
    ({ from, event }) =>
      runOf(from.value) === run &&
      inputOf(from.value) === 'none' &&
      isLeaving(from.value) === leaving &&
      !EVERYWHERE.includes(event.type) &&
      !['input.required', 'input.given', 'adopted.asking'].includes(event.type),
  );
  const moved = here.filter((step) => step.effects.length > 0 || runOf(step.to.value) !== run);
  return moved.map((step) => {
    const target = runOf(step.to.value) === run ? '' : ` → ${runOf(step.to.value)}`;
    return `${step.event.type}${target}${step.effects.length > 0 ? ` / ${effectsOf(step).join(', ')}` : ''}`;
  });
}
const EVERYWHERE = ['signal', 'upstream', 'message', 'shown', 'show.full', 'reshow', 'cancel', 'cancelled', 'broke'];

describe('as the world sees it, a task', () => {
  /** "From `working`: may move to …", in the words of the specification. */
  const SPECIFIED = {
    working: ['cancelled', 'completed', 'failed', 'input_required'],
    input_required: ['cancelled', 'completed', 'failed', 'working'],
    completed: [],
    failed: [],
    cancelled: [],
  };

  it('moves as the lifecycle of MCP says: every move that it allows, and no other', () => {
    const seen = Object.fromEntries(TASK_STATUSES.map((status) => [status, new Set<string>()]));
    for (const { from, to } of steps) {
      const [before, after] = [statusOf(from.value), statusOf(to.value)];
      if (before && after && before !== after) seen[before]?.add(after);
    }
    expect(Object.fromEntries(Object.entries(seen).map(([status, moves]) => [status, [...moves].sort()]))).toEqual(
      SPECIFIED,
    );
  });

  it('begins as working', () => {
    expect(statusOf(steps[0]?.from.value)).toBe('working');
  });

  it('has a status in every state but those in which this daemon has no say in it', () => {
    const without = steps.map(({ to }) => to.value).filter((value) => statusOf(value) === undefined);
    expect([...new Set(without)].sort()).toEqual(['lost', 'refused', 'released']);
  });

  it('is told of only when its row says so: after a write that stands, and once', () => {
    const told = steps.filter((step) => effectsOf(step).some((effect) => effect.startsWith('tell')));
    const by = new Set(told.map(({ event }) => event.type));
    expect([...by].sort()).toEqual([
      ...['cancelled', 'ended.cancelled', 'ended.completed', 'ended.failed', 'released', 'shown'],
    ]);
    for (const step of steps.filter(
      ({ from, to }) => statusOf(from.value) !== statusOf(to.value) && statusOf(to.value),
    ))
      expect(
        effectsOf(step).some((effect) => ['tell', 'tellCancelled', 'writeStatus'].includes(effect)) || isQuiet(step),
      ).toBe(true);
  });
  /** A row that was put back says `working` by the write that put it back; one that is found says what it said. */
  const isQuiet = ({ event }: Step) => event.type === 'requeued' || event.type === 'adopted.asking';
});

describe('a task that is', () => {
  it.each([
    [
      'known',
      [
        ...['create → creating / insert', 'adopted.queued → queued / submit'],
        ...['adopted.followed → dispatched / submitReserved', 'reserve / deny', 'answered → ending / writeEnding'],
        ...['lost.rerun → rerunning / writeRerun', 'row.lost → lost / abandon, close'],
      ],
    ],
    [
      'creating',
      [
        ...['create / insert', 'created.queued → queued / submit', 'created.dispatching → dispatched / submitReserved'],
        ...['refused → refused / discard', 'taken → lost / abandon, close', 'reserve / deny'],
      ],
    ],
    [
      'queued',
      [
        ...['reserve → reserving / writeReserved', 'answered → ending / writeEnding', 'unsent → held / waitForServer'],
        ...['row.lost → lost / abandon, close', ...leaves()],
      ],
    ],
    [
      'reserving',
      [
        ...['reserve / deny', 'answered → ending / writeEnding', 'unsent → returned', 'reserved → dispatched / grant'],
        ...['reserve.full → returning / deny', 'row.lost → lost / abandon, close', ...leaves()],
      ],
    ],
    [
      'returning',
      [
        ...['reserve / deny', 'answered → held / waitForServer', 'unsent → held / waitForServer'],
        ...['row.lost → lost / abandon, close', ...leaves()],
      ],
    ],
    [
      'returned',
      [
        ...['reserve / deny', 'reserved → requeueing / writeUnsent', 'reserve.full → held / waitForServer'],
        ...['row.lost → lost / abandon, close', ...leaves()],
      ],
    ],
    [
      'dispatched',
      [
        ...['reserve / grant', 'answered → ending / writeEnding', 'unsent → requeueing / writeUnsent'],
        ...['lost.followed → apart / waitForServer', 'lost.rerun → rerunning / writeRerun'],
        ...['row.lost → lost / abandon, close', 'leave.followed → releasing / letGo, writeReleased'],
      ],
    ],
    ['held', ['reserve / deny', 'row.lost → lost / abandon, close', 'due → queued / submit', ...leaves()]],
    ['apart', ['reserve / deny', 'row.lost → lost / abandon, close', 'due → dispatched / submitReserved', ...leaves()]],
    [
      'requeueing',
      [
        ...['reserve / deny', 'requeued → held / waitForServer', 'requeue.full / retryLater'],
        ...['row.lost → lost / abandon, close', 'retry / writeUnsent'],
      ],
    ],
    [
      'rerunning',
      [
        ...['reserve / deny', 'requeued → queued / submit', 'requeue.full / retryLater'],
        ...['row.lost → lost / abandon, close', 'retry / writeRerun'],
      ],
    ],
    [
      'ending',
      [
        ...['reserve / deny', 'ended.completed → completed / tell, close', 'ended.failed → failed / tell, close'],
        ...['ended.cancelled → cancelled / tell, close', 'end.full / retryLater'],
        ...['row.lost → lost / abandon, close', 'retry / rewriteEnding'],
      ],
    ],
    ['releasing', ['reserve / deny', 'released → released / tellPeers, close', 'row.lost → lost / abandon, close']],
  ])('%s does this, and nothing else', (run, expected) => {
    expect(reactionsIn(run)).toEqual(expected);
  });

  it('in the hands of a daemon that stops is waited for if it was sent, and goes to whoever comes next otherwise', () => {
    const changed = OPEN_RUNS.map((run) => [
      run,
      reactionsIn(run, true).filter((each) => !reactionsIn(run).includes(each)),
    ]);
    expect(Object.fromEntries(changed.filter(([, reactions]) => reactions?.length))).toEqual({
      creating: ['created.queued → releasing / letGo, writeReleased', 'created.dispatching → requeueing / writeUnsent'],
      dispatched: ['answered → ending / writeStopped', 'lost.followed → releasing / letGo, writeReleased'],
      requeueing: ['requeued → releasing / letGo, writeReleased'],
      rerunning: ['requeued → releasing / letGo, writeReleased'],
    });
  });

  it('over changes no more and orders nothing', () => {
    const over = new Map(steps.filter(({ to }) => typeof to.value === 'string').map(({ to }) => [to.value, to]));
    expect([...over.keys()].sort()).toEqual(OVER);
    for (const snapshot of over.values())
      for (const event of EVENTS) {
        const [next, effects] = transition(taskMachine, snapshot as never, event);
        expect([next.value, effects]).toEqual([snapshot.value, []]);
      }
  });
});

const OPEN_RUNS = [...new Set(steps.map(({ from }) => runOf(from.value)))];
function leaves(): string[] {
  return ['leave', 'leave.followed'].map((event) => `${event} → releasing / letGo, writeReleased`);
}

describe('whatever happens to a task', () => {
  it('it can be cancelled, lost and given up in every state', () => {
    for (const run of OPEN_RUNS) {
      const by = (type: string) => steps.filter(({ from, event }) => runOf(from.value) === run && event.type === type);
      for (const step of by('cancel')) expect(effectsOf(step)).toEqual(['writeCancelled']);
      for (const step of by('cancelled')) expect(effectsOf(step)).toEqual(['tellCancelled', 'stopCall', 'close']);
      for (const step of by('row.lost'))
        expect(runOf(step.to.value), 'its row is not on the disk yet').toBe(run === 'creating' ? run : 'lost');
      for (const step of by('broke')) expect(runOf(step.to.value)).toBe('releasing');
    }
  });

  it('it asks and goes on while it is under way, and each status is written as it is reached', () => {
    const asked = steps.filter(({ event }) => event.type === 'input.required' || event.type === 'input.given');
    const moved = asked.filter(({ from, to }) => inputOf(from.value) !== inputOf(to.value));
    for (const step of moved) expect(effectsOf(step)).toEqual(['writeStatus']);
    const quiet = ['creating', 'ending', 'known', 'releasing'];
    expect([...new Set(moved.map(({ from }) => runOf(from.value)))].sort()).toEqual(
      OPEN_RUNS.filter((run) => !quiet.includes(run)).sort(),
    );
  });

  it('what may bring the next event at once is the last effect but for the farewell', () => {
    for (const step of steps) {
      const [last, ...before] = effectsOf(step)
        .filter((effect) => effect !== 'close')
        .reverse();
      expect(before.filter((effect) => ['submit', 'submitReserved', 'stopCall', 'abandon'].includes(effect))).toEqual(
        [],
      );
      expect(last).not.toBe('close');
    }
  });

  it('it is closed once, at its end', () => {
    for (const step of steps) {
      const isEnd = typeof step.to.value === 'string' && typeof step.from.value !== 'string';
      expect(effectsOf(step).filter((effect) => effect === 'close' || effect === 'discard')).toHaveLength(
        isEnd ? 1 : 0,
      );
    }
  });

  it('nothing is submitted without a reservation but what was reserved before: at most once', () => {
    const unreserved = steps.filter((step) => effectsOf(step).includes('submitReserved'));
    expect(new Set(unreserved.map(({ from, event }) => `${runOf(from.value)} + ${event.type}`))).toEqual(
      new Set(['known + adopted.followed', 'creating + created.dispatching', 'apart + due']),
    );
    const granted = steps.filter((step) => effectsOf(step).includes('grant'));
    for (const { to } of granted) expect(runOf(to.value)).toBe('dispatched');
  });
});

describe('lowered to a table, the chart', () => {
  const first: State = lowered(taskMachine);

  it('is the same in every state under every event', () => {
    const states = new Map<string, State>([[JSON.stringify(first.value), first]]);
    for (const { from, event, to, effects } of steps) {
      const state = states.get(JSON.stringify(from.value));
      const step = state?.steps[event.type as TaskEventType];
      expect([step?.next.value ?? from.value, step?.effects ?? []]).toEqual([
        to.value,
        effects.map(({ type }) => type),
      ]);
      if (step) states.set(JSON.stringify(to.value), step.next);
    }
    expect(states.size).toBe(
      new Set(steps.flatMap(({ from, to }) => [from, to].map(({ value }) => JSON.stringify(value)))).size,
    );
  });

  it('goes as an actor goes, on a long way with every event', () => {
    const ordered: string[] = [];
    const actions = Object.fromEntries(steps.flatMap(effectsOf).map((name) => [name, () => void ordered.push(name)]));
    const actor = createActor(taskMachine.provide({ actions } as never));
    actor.start();
    const way = [
      'create',
      'created.queued',
      'reserve',
      'reserved',
      'input.required',
      'lost.rerun',
      'requeued',
      'reserve',
    ];
    const rest = ['reserve.full', 'unsent', 'due', 'reserve', 'reserved', 'leave', 'answered', 'end.full', 'retry'];
    let state = first;
    const tabled: string[] = [];
    for (const type of [...way, ...rest, 'ended.failed'] as TaskEventType[]) {
      actor.send({ type });
      tabled.push(...(state.steps[type]?.effects ?? []));
      state = state.steps[type]?.next ?? state;
    }
    expect([tabled, state.value]).toEqual([ordered, actor.getSnapshot().value]);
    expect(state.value).toBe('failed');
  });
});
