// Lowers the request's chart to a table, once, by walking it with XState itself. The chart stays the one definition;
// the table only makes a step cost a property look-up, because an actor per request costs more than the request.

import { type AnyMachineSnapshot, getNextTransitions, initialTransition, transition } from 'xstate';
import { type RequestEffect, type RequestEvent, requestMachine } from '../../machines/request.ts';

export type EventType = RequestEvent['type'];
export type Row = { readonly state: string; readonly steps: { readonly [event in EventType]?: Step } };
export type Step = { readonly next: Row; readonly effects: readonly RequestEffect[] };

/** The row of the state in which every request begins; all other rows are reached from it. */
export function lowerRequest(): Row {
  const rows = new Map<string, Row>();
  const [initial] = initialTransition(requestMachine);
  return rowOf(initial, rows);
}

function rowOf(snapshot: AnyMachineSnapshot, rows: Map<string, Row>): Row {
  const state = String(snapshot.value);
  const known = rows.get(state);
  if (known) return known;
  const steps: { [event in EventType]?: Step } = {};
  const row: Row = { state, steps };
  rows.set(state, row);
  for (const { eventType } of getNextTransitions(snapshot)) {
    const type = eventType as EventType;
    const [next, actions] = transition(requestMachine, snapshot as never, { type });
    steps[type] = { next: rowOf(next, rows), effects: actions.map((action) => action.type as RequestEffect) };
  }
  return row;
}
