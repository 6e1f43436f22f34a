// Lowers a chart to a table, once, by walking it with XState itself. The chart stays the one definition; the table makes a
// step cost a property look-up, for charts whose events come with every call. Such a chart has no context, no guards and no
// timers of its own: what depends on a value is decided inside an effect, or comes as another event.

import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  getNextTransitions,
  initialTransition,
  transition,
} from 'xstate';

export type Row<Event extends string, Effect extends string> = {
  /** The state as a path: `resident.open`. */
  readonly state: string;
  /** An event that the state does not know has no step. */
  readonly steps: { readonly [event in Event]?: Step<Event, Effect> };
};
export type Step<Event extends string, Effect extends string> = {
  readonly next: Row<Event, Effect>;
  readonly effects: readonly Effect[];
};

/** The row of the first state; all other rows are reached from it. */
export function lowered<Event extends string, Effect extends string>(machine: AnyStateMachine): Row<Event, Effect> {
  const rows = new Map<string, Row<Event, Effect>>();

  function rowOf(snapshot: AnyMachineSnapshot): Row<Event, Effect> {
    const state = pathOf(snapshot.value);
    const known = rows.get(state);
    if (known) return known;
    const steps: { [event in Event]?: Step<Event, Effect> } = {};
    const row: Row<Event, Effect> = { state, steps };
    rows.set(state, row);
    for (const { eventType } of getNextTransitions(snapshot)) {
      const [next, actions] = transition(machine, snapshot as never, { type: eventType } as never);
      steps[eventType as Event] = { next: rowOf(next), effects: actions.map(({ type }) => type as Effect) };
    }
    return row;
  }

  return rowOf(initialTransition(machine)[0]);
}

const pathOf = (value: AnyMachineSnapshot['value']): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value)
        .map(([key, inner]) => (inner === undefined ? key : `${key}.${pathOf(inner)}`))
        .join();
