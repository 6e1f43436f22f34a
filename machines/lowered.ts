// A chart as a table, for charts whose events come with every call: a step costs a look-up where a step of an actor costs tens of
// microseconds. The chart stays the one definition: each row is walked with XState itself, once, when the first step is made from
// it. Such a chart has no context, no guards and no timers: what depends on a value comes as another event.

import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  getNextTransitions,
  initialTransition,
  transition,
} from 'xstate';

export type Step<Event extends string, Effect extends string> = {
  readonly next: Row<Event, Effect>;
  readonly effects: readonly Effect[];
};
/** An event that leads nowhere from a state, and orders nothing there, has no step. */
export type Steps<Event extends string, Effect extends string> = { readonly [event in Event]?: Step<Event, Effect> };

export class Row<Event extends string, Effect extends string> {
  readonly value: AnyMachineSnapshot['value'];
  /** The value as a path: `resident.open`. */
  readonly state: string;
  readonly isFinal: boolean;
  readonly #walk: () => Steps<Event, Effect>;
  #steps: Steps<Event, Effect> | undefined;

  constructor({ value, status }: AnyMachineSnapshot, walk: () => Steps<Event, Effect>) {
    this.value = value;
    this.state = pathOf(value);
    this.isFinal = status === 'done';
    this.#walk = walk;
  }

  get steps(): Steps<Event, Effect> {
    this.#steps ??= this.#walk();
    return this.#steps;
  }
}

/** The row of the first state; all other rows are reached from it. */
export function lowered<Event extends string, Effect extends string>(machine: AnyStateMachine): Row<Event, Effect> {
  const rows = new Map<string, Row<Event, Effect>>();

  function rowOf(snapshot: AnyMachineSnapshot): Row<Event, Effect> {
    const key = pathOf(snapshot.value);
    const row = rows.get(key) ?? new Row<Event, Effect>(snapshot, () => stepsFrom(snapshot, key));
    rows.set(key, row);
    return row;
  }

  function stepsFrom(snapshot: AnyMachineSnapshot, key: string): Steps<Event, Effect> {
    const steps: { [event in Event]?: Step<Event, Effect> } = {};
    for (const { eventType } of getNextTransitions(snapshot)) {
      const [next, actions] = transition(machine, snapshot as never, { type: eventType } as never);
      if (actions.length === 0 && pathOf(next.value) === key) continue;
      steps[eventType as Event] = { next: rowOf(next), effects: actions.map(({ type }) => type as Effect) };
    }
    return steps;
  }

  return rowOf(initialTransition(machine)[0]);
}

const pathOf = (value: AnyMachineSnapshot['value']): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value)
        .map(([key, inner]) => (inner === undefined ? key : `${key}.${pathOf(inner)}`))
        .join();
