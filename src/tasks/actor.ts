// The machine of a task as an actor. It shows each status that the row has taken on; the row is written first.

import { createActor } from 'xstate';
import { type TaskEvent, taskMachine } from '../../machines/task.ts';
import type { TaskStatus } from '../protocol/tasks.ts';

export type TaskActor = ReturnType<typeof taskActor>;

/** Machines are given their ports once, because that costs more than an actor does. */
const watchers = new WeakMap<object, () => void>();
const machine = taskMachine.provide({ actions: { show: ({ self }) => watchers.get(self)?.() } });

/** Told of each status but the first. */
export function taskActor(row: TaskStatus, onStatus: () => void, onCrash: (error: unknown) => void) {
  const status = row === 'input_required' ? row : 'working';
  const actor = createActor(machine, { input: { status } });
  actor.subscribe({ error: onCrash });
  actor.start();
  watchers.set(actor, onStatus);
  const isOver = (): boolean => actor.getSnapshot().status !== 'active';
  return {
    isOver,
    /** XState complains aloud of an event to an actor that is done; here a late one is nothing unusual. */
    send: (type: TaskEvent['type']): void => void (isOver() || actor.send({ type })),
    /** It is somebody else's now. */
    stop: () => actor.stop(),
  };
}
