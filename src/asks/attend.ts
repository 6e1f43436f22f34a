// A host that fetches the result of a task is asked what the task's call asks, on the very line on which it waits; whichever
// daemon makes the call, for the rows of asks are everybody's. Whoever else answers first spares it that.

import type { Answer, Ask, Asking } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { AskView, Inbox, Reply } from './ask.ts';
import { type Asked, askedAgain, spokenBy } from './host.ts';
import { questionOf } from './views.ts';

export type Attendance = {
  readonly task: string;
  readonly principal: string;
  /** Undefined when this host cannot answer such a question. */
  readonly onAsk: (ask: Ask) => Asking | undefined;
  readonly signal: AbortSignal;
};

const BY = 'the host';

export function createAttend(inbox: Inbox, onTrouble: (error: unknown) => void) {
  return (attendance: Attendance): void => {
    const asked = new Map<string, Asking | undefined>();
    void attend(attendance, asked)
      .catch(onTrouble)
      .finally(() => {
        for (const asking of asked.values()) asking?.withdraw();
      });
  };

  async function attend(attendance: Attendance, asked: Map<string, Asking | undefined>): Promise<void> {
    const { task, principal, signal } = attendance;
    while (!signal.aborted) {
      const { version } = inbox;
      const open = inbox.list(principal).filter((view) => view.task === task && view.stage === 'answer');
      for (const [id, asking] of asked)
        if (!open.some((view) => view.id === id)) {
          asked.delete(id);
          asking?.withdraw();
        }
      for (const view of open) if (!asked.has(view.id)) asked.set(view.id, ask(attendance, view, inbox.asked(view.id)));
      await changedOr(signal, inbox.changed(version));
    }
  }

  function ask(attendance: Attendance, view: AskView, asked: Asked | undefined, isLast = false): Asking | undefined {
    let again: Asking | undefined;
    const answer = (given: Answer): void => {
      const reply = spokenBy(questionOf(view), given);
      if (reply) void answered(reply).catch(onTrouble);
    };
    /** A form that was not filled in as it wants to be goes back once, with what is wrong; then it counts as left alone. */
    async function answered(reply: Reply): Promise<void> {
      try {
        await inbox.answer(view.id, reply, { by: BY, principal: view.principal });
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        if (error.code !== 'invalid') return; // somebody was quicker
        if (isLast) return answered({ action: 'cancel' });
        again = ask(attendance, view, askedAgain(asked, error.message), true);
      }
    }
    const asking = asked && attendance.onAsk({ ...asked, isOurs: view.kind === 'approval', answer });
    return asking && { ...asking, withdraw: () => (again ?? asking).withdraw() };
  }
}

const changedOr = (signal: AbortSignal, changed: Promise<void>): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    signal.addEventListener('abort', done, { once: true });
    void changed.then(done);
  });
