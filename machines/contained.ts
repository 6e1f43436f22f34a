// XState leaves the children of a crashed machine running (statelyai/xstate#5153), and here a child may own a process.
// A contained machine takes its children down with it, so that crashing and starting afresh is safe. Contain it last:
// `provide` makes a new machine, which is not contained.

import type { AnyActorRef, AnyStateMachine } from 'xstate';

export function contained<M extends AnyStateMachine>(machine: M): M {
  const transition: M['transition'] = (snapshot, event, scope) => {
    try {
      return machine.transition(snapshot, event, scope);
    } catch (error) {
      for (const child of Object.values<AnyActorRef>(snapshot.children)) scope.stopChild(child);
      throw error;
    }
  };
  return Object.assign(Object.create(machine), { transition });
}
