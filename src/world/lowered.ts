// A chart without context as a table: each step is asked of XState once, when it is first made, and looked up from then on. The
// chart stays the one definition; a look-up costs a fraction of a microsecond where a step of an actor costs tens of them.

import { type AnyMachineSnapshot, type AnyStateMachine, initialTransition, transition } from 'xstate';

export type Lowered<Event extends string, Effect extends string> = {
  readonly value: AnyMachineSnapshot['value'];
  /** Nothing for an event that leads nowhere from this state and orders nothing. */
  step(event: Event): Step<Event, Effect> | undefined;
};
export type Step<Event extends string, Effect extends string> = {
  readonly next: Lowered<Event, Effect>;
  readonly effects: readonly Effect[];
};

/** The state in which the chart begins; all others are reached from it. */
export function lower<Event extends string, Effect extends string>(machine: AnyStateMachine): Lowered<Event, Effect> {
  const known = new Map<string, Lowered<Event, Effect>>();

  function lowered(snapshot: AnyMachineSnapshot): Lowered<Event, Effect> {
    const key = JSON.stringify(snapshot.value);
    const found = known.get(key);
    if (found) return found;
    const steps = new Map<Event, Step<Event, Effect> | undefined>();

    function walk(type: Event): Step<Event, Effect> | undefined {
      const [next, actions] = transition(machine, snapshot, { type });
      if (actions.length === 0 && JSON.stringify(next.value) === key) return undefined;
      return { next: lowered(next), effects: actions.map((action) => action.type as Effect) };
    }

    const state: Lowered<Event, Effect> = {
      value: snapshot.value,
      step(event) {
        if (!steps.has(event)) steps.set(event, walk(event));
        return steps.get(event);
      },
    };
    known.set(key, state);
    return state;
  }

  return lowered(initialTransition(machine)[0]);
}
