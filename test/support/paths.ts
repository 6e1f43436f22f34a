// Walks a whole machine with XState's pure `transition`: every configuration that events, timers and dying ports can
// lead to. Effects are data here, none is executed, so a walk is exhaustive and takes milliseconds.

import type { AnyMachineSnapshot, AnyStateMachine, EventObject, InputFrom, StateValue } from 'xstate';
import { getNextTransitions, initialTransition, transition } from 'xstate';

export type Effect = { readonly type: string; readonly params?: any };
export type Step = {
  readonly from: AnyMachineSnapshot;
  readonly event: EventObject & Record<string, any>;
  readonly to: AnyMachineSnapshot;
  readonly effects: readonly Effect[];
};

/**
 * Every step from every reachable configuration. All `samples` are tried everywhere, also where nobody waits for them;
 * timers, done and error events need no sample. `key` says which configurations are the same.
 */
export function everyStep<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M>,
  samples: readonly EventObject[] | ((snapshot: any) => readonly EventObject[]),
  key: (snapshot: any) => unknown = ({ value, context }) => [value, context],
): Step[] {
  const first: AnyMachineSnapshot = initialTransition(machine, input as any)[0];
  const seen = new Set([JSON.stringify(key(first))]);
  const queue = [first];
  const steps: Step[] = [];
  for (const from of queue) {
    if (queue.length > 5_000)
      throw new Error('the state space does not close: bound the context or pass a coarser key');
    const sampled = typeof samples === 'function' ? samples(from) : samples;
    for (const event of [...sampled, ...internalEvents(from, sampled)]) {
      const [to, effects] = transition(machine, from as any, event as any) as any;
      steps.push({ from, event, to, effects });
      const id = JSON.stringify(key(to));
      if (seen.has(id)) continue;
      seen.add(id);
      if (to.status === 'active') queue.push(to);
    }
  }
  return steps;
}

/** The state as one word: `up.ready`. */
export function stateOf({ value }: { value: StateValue }): string {
  if (typeof value === 'string') return value;
  return Object.entries(value)
    .map(([key, inner]) => `${key}.${stateOf({ value: inner as StateValue })}`)
    .join(' & ');
}

export const statesOf = (steps: readonly Step[]): string[] =>
  [...new Set(steps.flatMap(({ from, to }) => [stateOf(from), stateOf(to)]))].sort();

/** Which event leads from which state to which: what a reader would draw. Events that keep the state are left out. */
export function reactions(
  steps: readonly Step[],
  of: (snapshot: AnyMachineSnapshot) => string = stateOf,
): Record<string, Record<string, string>> {
  const table: Record<string, Record<string, string>> = {};
  for (const { from, event, to } of steps) {
    const row = table[of(from)] ?? {};
    table[of(from)] = row;
    if (of(from) === of(to)) continue;
    const known = row[plain(event.type)]?.split(' | ') ?? [];
    row[plain(event.type)] = [...new Set([...known, of(to)])].sort().join(' | ');
  }
  return table;
}

/** What was sent to a port in one step, as `port:event`. */
export const told = (step: Step): string[] =>
  step.effects.filter(({ type }) => type === 'xstate.sendTo').map(({ params: p }) => `${p.targetId}:${p.event.type}`);

/** Which ports were begun in one step. XState passes silently over one that is not declared; this does not. */
export const begun = (step: Step): string[] =>
  step.effects
    .filter(({ type }) => type === 'xstate.spawnChild')
    .map(({ params }) => (params.actorRef ? params.src : `${params.src} is not declared`));

/** The timers that one step set, and for how long. */
export const timers = (step: Step): Record<string, number> =>
  Object.fromEntries(
    step.effects
      .filter(({ type, params }) => type === 'xstate.raise' && params.delay !== undefined)
      .map(({ params }) => [plain(params.event.type), params.delay]),
  );

/** `xstate.after.open.server.up.opening` is `after open`; `xstate.error.actor.connection` is `connection fails`. */
export function plain(type: string): string {
  const [, kind, rest = ''] = /^xstate\.(after|done\.actor|error\.actor)\.(.*)$/.exec(type) ?? [];
  if (kind === 'after') return `after ${rest.split('.')[0]}`;
  if (!kind) return type;
  return `${/^\d/.test(rest) ? 'port' : rest} ${kind === 'done.actor' ? 'done' : 'fails'}`;
}

function internalEvents(from: AnyMachineSnapshot, samples: readonly EventObject[]): EventObject[] {
  const types = new Set(getNextTransitions(from).map(({ eventType }) => eventType));
  return [...types]
    .filter(
      (type) => type.startsWith('xstate.') && !type.endsWith('*') && !samples.some((event) => event.type === type),
    )
    .map((type) => ({ type, error: 'it broke' }));
}
