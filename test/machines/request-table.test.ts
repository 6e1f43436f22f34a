// The chart of a request and the table it is lowered to are one thing: side by side, over every state, every event and
// every path, they go to the same state and do the same. What compares them notices any one difference.

import { describe, expect, it } from 'vitest';
import { type AnyMachineSnapshot, type AnyStateMachine, createMachine, initialTransition, transition } from 'xstate';
import { type Row as LoweredRow, lowered } from '../../machines/lowered.ts';
import { REQUEST_EFFECTS, type RequestEffect, requestMachine } from '../../machines/request.ts';
import type { Call } from '../../src/calls/call.ts';
import {
  actorDriver,
  type Driver,
  type Effects,
  type EventType,
  newRequest,
  tableDriver,
} from '../../src/calls/request.ts';

type Row = LoweredRow<EventType, RequestEffect>;

const STATES = requestMachine.config.states as Record<string, { on?: Record<string, unknown> }>;
const EVENTS = [...new Set(Object.values(STATES).flatMap(({ on = {} }) => Object.keys(on)))] as EventType[];

const TABLE: Row = lowered(requestMachine);

type Steps = (snapshot: AnyMachineSnapshot, type: EventType) => readonly [AnyMachineSnapshot, any[]];
const stepsOf =
  (machine: AnyStateMachine): Steps =>
  (snapshot, type) =>
    transition(machine, snapshot as never, { type } as never) as [AnyMachineSnapshot, any[]];

/** The chart itself takes the same step for each of many tables: it has no context, so a state says it all. */
const STEPS = ((): Steps => {
  const known = new Map<string, ReturnType<Steps>>();
  const step = stepsOf(requestMachine);
  return (snapshot, type) => {
    const key = `${snapshot.value} ${type}`;
    const taken = known.get(key) ?? step(snapshot, type);
    known.set(key, taken);
    return taken;
  };
})();

/** Walks both at once and writes down where they part: `sent + cancel: …`; the first place, where one is enough. */
function differences(machine: AnyStateMachine, first: Row, most = Number.POSITIVE_INFINITY) {
  const found: string[] = [];
  const seen = new Set<string>();
  const steps = machine === requestMachine ? STEPS : stepsOf(machine);
  const visit = (snapshot: AnyMachineSnapshot, row: Row): void => {
    if (found.length >= most) return;
    const [charted, tabled] = [String(snapshot.value), row.state];
    if (charted !== tabled) return void found.push(`${charted} is ${tabled}`);
    if (row.isFinal !== (snapshot.status === 'done')) found.push(`${charted} is final: ${row.isFinal}`);
    if (seen.has(charted)) return;
    seen.add(charted);
    for (const type of EVENTS) {
      const [to, actions] = steps(snapshot, type);
      const chart = actions.map((action) => action.type).join();
      const step = row.steps[type];
      const table = (step?.effects ?? []).join();
      const [next, expected] = [step?.next.state ?? row.state, String(to.value)];
      if (chart !== table || next !== expected)
        found.push(`${charted} + ${type}: ${expected} [${chart}] is ${next} [${table}]`);
      else visit(to, step?.next ?? row);
    }
    for (const type of Object.keys(row.steps)) if (!EVENTS.includes(type as EventType)) found.push(`unknown ${type}`);
  };
  visit(initialTransition(machine)[0] as AnyMachineSnapshot, first);
  return { found, states: [...seen] };
}

it('is the same machine in every reachable state under every event', () => {
  const { found, states } = differences(requestMachine, TABLE);
  expect(found).toEqual([]);
  expect(states.sort()).toEqual(Object.keys(STATES).sort());
});

it('keeps no step that does nothing: whatever a state does not wait for is not in its row', () => {
  for (const row of rows())
    expect([row.state, Object.keys(row.steps).sort()]).toEqual([
      row.state,
      Object.keys(STATES[row.state]?.on ?? {}).sort(),
    ]);
});

describe('a comparison that can fail', () => {
  const chartSteps = Object.entries(STATES).flatMap(([state, { on = {} }]) =>
    Object.keys(on).map((event) => [state, event as EventType] as const),
  );

  it.each(chartSteps)('notices that the chart lost what it does in %s on %s', (state, event) => {
    const isNoticed = (machine: AnyStateMachine) => differences(machine, TABLE, 1).found.length > 0;
    expect(isNoticed(changed(state, (on) => delete on[event]))).toBe(true);
    const actionsOf = (on: any): string[] => [on[event].actions].flat();
    for (const lost of actionsOf(STATES[state]?.on)) {
      const without = changed(state, (on) => {
        on[event] = { ...on[event], actions: actionsOf(on).filter((action) => action !== lost) };
      });
      expect(isNoticed(without), lost).toBe(true);
    }
  });

  it.each(chartSteps)('notices that the table lost what it does in %s on %s', (state, event) => {
    const rowIn = (first: Row): any => rows(first).find((row) => row.state === state);
    const { effects } = rowIn(TABLE).steps[event];
    const mutations = [
      (row: any) => delete row.steps[event],
      (row: any) => Object.assign(row.steps[event], { next: { state: 'elsewhere', isFinal: true, steps: {} } }),
      ...effects.map((_: string, at: number) => (row: any) => row.steps[event].effects.splice(at, 1)),
    ];
    for (const mutate of mutations) {
      const first = copyOf(TABLE);
      mutate(rowIn(first));
      expect(differences(requestMachine, first, 1).found).not.toEqual([]);
    }
  });
});

it('leads a request the same way by table and by actor over every path', () => {
  const byActor = actorDriver((error) => expect.unreachable(`${error}`));
  for (const path of paths()) {
    const expected = charted(path);
    expect(driven(path, tableDriver), `table: ${path}`).toEqual(expected);
    expect(driven(path, byActor), `actor: ${path}`).toEqual(expected);
  }
});

/** The shortest way to each state, then each event, known to the state or not, and after a known one each end. */
function paths(): EventType[][] {
  const ways = new Map<string, EventType[]>([['arrived', []]]);
  const found: EventType[][] = [];
  for (const row of rows()) {
    const way = ways.get(row.state) as EventType[];
    for (const [event, step] of Object.entries(row.steps) as [EventType, Row['steps'][EventType]][]) {
      if (step && !ways.has(step.next.state)) ways.set(step.next.state, [...way, event]);
      for (const end of ['result', 'cancel', 'gone'] as const) found.push([...way, event, end]);
    }
    for (const event of EVENTS) found.push([...way, event]);
  }
  return found;
}

/** The table again, as data that may be changed. */
function copyOf(row: Row, copies = new Map<Row, any>()): Row {
  const known = copies.get(row);
  if (known) return known;
  const copy = { state: row.state, isFinal: row.isFinal, steps: {} as Record<string, object> };
  copies.set(row, copy);
  for (const [event, { next, effects }] of Object.entries(row.steps))
    copy.steps[event] = { next: copyOf(next, copies), effects: [...effects] };
  return copy as unknown as Row;
}

/** Every row, in the order in which they are reached. */
function rows(first: Row = TABLE): Row[] {
  const found = new Set([first]);
  for (const row of found) for (const step of Object.values(row.steps)) found.add(step.next);
  return [...found];
}

function charted(path: EventType[]): string[] {
  const effects: string[] = [];
  let [snapshot]: [any, ...unknown[]] = initialTransition(requestMachine);
  for (const type of path) {
    const [next, actions] = transition(requestMachine, snapshot, { type });
    snapshot = next;
    effects.push(...actions.map((action) => action.type));
  }
  return effects;
}

function driven(path: EventType[], drive: Driver): string[] {
  const done: string[] = [];
  const effects = Object.fromEntries(
    REQUEST_EFFECTS.map((effect) => [effect, () => done.push(effect)]),
  ) as never as Effects;
  const owner = { effects, overdue: () => {} };
  const request = newRequest({} as Call, owner, { timeoutMs: 1, maxTimeoutMs: 1 }, 0);
  for (const event of path) drive(request, event);
  return done;
}

/** The chart with one state's reactions changed. */
function changed(state: string, change: (on: any) => unknown): AnyStateMachine {
  const config = structuredClone(requestMachine.config) as any;
  change(config.states[state].on);
  return createMachine(config, { actions: requestMachine.implementations.actions as never });
}
