// Requests of a host that wait for what tasks come to. While one waits, what its task asks is asked on its line; when the
// host leaves, or its session ends, only the waiting is over.

import type { Ask, Asking, Outcome } from '../calls/call.ts';
import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { withMeta, withoutMeta } from '../protocol/edit.ts';
import { errorObject, TroupeError } from '../protocol/failures.ts';
import { RELATED_TASK } from '../protocol/tasks.ts';
import { type Beginning, type CallsOptions, named } from './calls.ts';
import type { Line } from './host.ts';
import type { OpenLine } from './questions.ts';
import { errorOf } from './refusals.ts';

type Waiter = {
  readonly task: string;
  readonly open: OpenLine;
  readonly leaving: AbortController;
  /** What was asked on its line and is not answered. */
  readonly askings: Set<Asking>;
};
type WaitingOptions = Pick<CallsOptions, 'world' | 'identity' | 'questions'>;

/** More than anybody has tasks. */
const MAX_WAITING = 10_000;

export function createWaiting({ world, identity, questions }: WaitingOptions) {
  const { principal, scope } = identity;
  const waiters = new Map<string, Waiter>();
  const byTask = new Map<string, Waiter>();

  function begin(task: string, { id, line }: Beginning): void {
    const { server } = world.tasks.get(task, principal);
    if (waiters.has(id)) throw new TroupeError('invalid', `a request with the id ${id.slice(0, 64)} is in flight`);
    if (waiters.size >= MAX_WAITING)
      throw new TroupeError('busy', `${MAX_WAITING} requests of the session wait for tasks; wait for one of them`);
    const open = { line, isOpen: true };
    const waiter: Waiter = { task, open, leaving: new AbortController(), askings: new Set() };
    const { signal } = waiter.leaving;
    waiters.set(id, waiter);
    byTask.set(task, waiter);
    world.attend({ task, principal, signal, onAsk: (ask) => asked(waiter, server, ask) });
    world.tasks.outcome(task, principal, signal).then(
      (outcome) => end(id, waiter, frameOf(id, task, outcome)),
      (error) => end(id, waiter, errorFrame(id, errorOf(error))),
    );
  }

  /** At an endpoint that is not that server's alone, the words say whose they are. */
  function asked({ task, open, leaving, askings }: Waiter, server: string, ask: Ask): Asking | undefined {
    const words = scope === server ? ask : named(server, ask);
    if (!words || leaving.signal.aborted) return undefined;
    const answer: Ask['answer'] = (given) => {
      if (asking) askings.delete(asking);
      ask.answer(given.ok ? { ok: true, result: withoutMeta(given.result, RELATED_TASK) } : given);
    };
    const asking = questions.ask(open, { ...words, params: related(words.params, task), answer });
    if (asking) askings.add(asking);
    return asking;
  }

  /** What was asked and not answered is taken back while there is a line to say so. */
  function end(id: string, waiter: Waiter, answer: Buffer): void {
    const { task, open, leaving, askings } = waiter;
    waiters.delete(id);
    if (byTask.get(task) === waiter) byTask.delete(task);
    leaving.abort();
    for (const asking of askings) asking.withdraw();
    open.isOpen = false;
    open.line.answer(answer);
  }

  function leave(id: string, why = 'the caller cancelled it'): boolean {
    const waiter = waiters.get(id);
    waiter?.leaving.abort(new TroupeError('cancelled', `${why}; the task goes on`));
    return waiter !== undefined;
  }

  return {
    begin,
    leave,
    leaveAll(why: string): void {
      for (const id of [...waiters.keys()]) leave(id, why);
    },
    lineFor: (task: string): Line | undefined => byTask.get(task)?.open.line,
    get count() {
      return waiters.size;
    },
  };
}

/** Exactly what the call would have been answered with, and whose it is. */
function frameOf(id: string, task: string, outcome: Outcome): Buffer {
  if (!outcome.ok) return errorFrame(id, errorObject(outcome.failure));
  return resultFrame(id, related(outcome.result, task));
}

/** An id of the server's own in that place is not one that the host knows. */
export const related = (object: Buffer, taskId: string): Buffer =>
  withMeta(object, RELATED_TASK, JSON.stringify({ taskId }));
