// The chart of a request and the table it is lowered to are one thing: side by side, over every state, every event and
// every path, they go to the same state and do the same. What compares them notices any one difference.

import { describe, expect, it } from 'vitest';
import { type AnyMachineSnapshot, type AnyStateMachine, createMachine, initialTransition, transition } from 'xstate';
import { type RequestEffect, requestMachine } from '../../machines/request.ts';
import type { Call } from '../../src/calls/call.ts';
import { actorDriver, type Driver, type Effects, newRequest, tableDriver } from '../../src/calls/request.ts';
import { type EventType, lowerRequest, type Row } from '../../src/calls/table.ts';

const EVENTS: EventType[] = ['dispatch', 'progress', 'result', 'error', 'cancel', 'deadline', 'gone'];
const EFFECTS = Object.keys(requestMachine.implementations.actions) as RequestEffect[];

/** Walks both at once and writes down where they part: `sent + cancel: …`. */
function differences(machine: AnyStateMachine, first: Row) {
  const found: string[] = [];
  const seen = new Set<string>();
  const visit = (snapshot: AnyMachineSnapshot, row: Row): void => {
    const [charted, tabled] = [String(snapshot.value), row.state];
    if (charted !== tabled) return void found.push(`${charted} is ${tabled}`);
    if (seen.has(charted)) return;
    seen.add(charted);
    for (const type of EVENTS) {
      const [to, actions] = transition(machine, snapshot as never, { type } as never) as [AnyMachineSnapshot, any[]];
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
  const { found, states } = differences(requestMachine, lowerRequest());
  expect(found).toEqual([]);
  expect(states.sort()).toEqual(Object.keys(requestMachine.states).sort());
});

it('keeps no step that does nothing: whatever a state does not wait for is not in its row', () => {
  const [queued, sent] = [lowerRequest(), lowerRequest().steps.dispatch?.next as Row];
  expect(Object.keys(queued.steps).sort()).toEqual(['cancel', 'deadline', 'dispatch', 'gone']);
  expect(Object.keys(sent.steps).sort()).toEqual(['cancel', 'deadline', 'error', 'gone', 'progress', 'result']);
  for (const { next } of Object.values(sent.steps)) if (next !== sent) expect(next.steps).toEqual({});
});

describe('a comparison that can fail', () => {
  const chartSteps = Object.entries(requestMachine.config.states ?? {}).flatMap(([state, { on }]) =>
    Object.keys((on as object) ?? {}).map((event) => [state, event] as const),
  );

  it.each(chartSteps)('notices that the chart lost what it does in %s on %s', (state, event) => {
    expect(
      differences(
        changed(state, (on) => delete on[event]),
        lowerRequest(),
      ).found,
    ).not.toEqual([]);
    const actionsOf = (on: any): string[] => [on[event].actions].flat();
    for (const lost of actionsOf((requestMachine.config.states as any)[state].on)) {
      const without = changed(state, (on) => {
        on[event] = { ...on[event], actions: actionsOf(on).filter((action) => action !== lost) };
      });
      expect(differences(without, lowerRequest()).found).not.toEqual([]);
    }
  });

  it.each(chartSteps)('notices that the table lost what it does in %s on %s', (state, event) => {
    const rowOf = (first: Row): any => (state === 'queued' ? first : first.steps.dispatch?.next);
    const { effects } = rowOf(lowerRequest()).steps[event];
    const mutations = [
      (row: any) => delete row.steps[event],
      (row: any) => Object.assign(row.steps[event], { next: { state: 'elsewhere', steps: {} } }),
      ...effects.map((_: string, at: number) => (row: any) => row.steps[event].effects.splice(at, 1)),
    ];
    for (const mutate of mutations) {
      const first = lowerRequest();
      mutate(rowOf(first));
      expect(differences(requestMachine, first).found).not.toEqual([]);
    }
  });
});

it('leads a request the same way by table and by actor over every path', () => {
  for (const path of paths(4)) {
    const expected = charted(path);
    expect(driven(path, tableDriver), `table: ${path}`).toEqual(expected);
    expect(driven(path, byActor), `actor: ${path}`).toEqual(expected);
  }
});

const byActor = (effects: Effects) => actorDriver(effects, (error) => expect.unreachable(`${error}`));

/** Every sequence of events up to the end of the request, and each event once more after it. */
function paths(length: number, from: any = initialTransition(requestMachine)[0]): EventType[][] {
  if (length === 0) return [[]];
  return EVENTS.flatMap((type) => {
    const [to] = transition(requestMachine, from, { type });
    const rest = from.status === 'done' ? [[]] : paths(length - 1, to);
    return rest.map((after) => [type, ...after]);
  });
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

function driven(path: EventType[], driverOf: (effects: Effects) => Driver): string[] {
  const done: string[] = [];
  const effects = Object.fromEntries(EFFECTS.map((effect) => [effect, () => done.push(effect)])) as never;
  const drive = driverOf(effects);
  const request = newRequest({} as Call, '1', { timeoutMs: 1, maxTimeoutMs: 1 });
  for (const event of path) drive(request, event);
  return done;
}

/** The chart with one state's reactions changed. */
function changed(state: string, change: (on: any) => unknown): AnyStateMachine {
  const config = structuredClone(requestMachine.config) as any;
  change(config.states[state].on);
  return createMachine(config, { actions: requestMachine.implementations.actions as never });
}
