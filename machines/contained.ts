// XState leaves the children of a crashed machine running (statelyai/xstate#5153), and here a child may own a process.
// A contained machine takes its children down with it, so that crashing and starting afresh is safe.

import type { AnyActorRef, AnyStateMachine } from 'xstate';

export function contained<M extends AnyStateMachine>(machine: M): M {
  const transition: M['transition'] = (snapshot, event, scope) => {
    const stopChildren = () => {
      for (const child of Object.values<AnyActorRef>(snapshot.children)) scope.stopChild(child);
    };
    try {
      const next = machine.transition(snapshot, event, scope);
      if (next.status === 'error') stopChildren();
      return next;
    } catch (error) {
      stopChildren();
      throw error;
    }
  };
  return Object.assign(Object.create(machine), { transition });
}
