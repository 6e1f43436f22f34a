// The host's side of an ask: how a host is asked, and what its answer says. A server's question reaches the host as the server
// wrote it; an approval is a form without fields, whose message says which tool would run with which arguments.

import type { Answer, Ask, Asking } from '../calls/call.ts';
import { withTextAt } from '../protocol/edit.ts';
import { TroupeError } from '../protocol/failures.ts';
import { member, spansOf, textAt } from '../protocol/json.ts';
import { withoutControls } from '../telemetry/printable.ts';
import type { AskedOfHost, AskView, Inbox, Question, Reply } from './ask.ts';
import { questionOf } from './rows.ts';

export type About = { readonly asked?: AskedOfHost; readonly server: string; readonly tool: string };

/** A longer approval goes to the inbox: a person shall see all of what they approve. */
const SHOWN_CHARACTERS = 16_384;
const METHOD_NOT_FOUND = '-32601';

/** Nothing for a question that a host cannot show whole; the inbox can. */
export function askedOf(question: Question, { asked, server, tool }: About): AskedOfHost | undefined {
  if (asked) return asked;
  const params =
    question.kind === 'approval' ? approvalForm(question.arguments, server, tool) : visit(question, server);
  return params && { method: 'elicitation/create', params: Buffer.from(JSON.stringify(params)) };
}

/** The same question once more, with what was wrong with the answer before its message. Nothing for a question without one. */
export function askedAgain(asked: AskedOfHost | undefined, problem: string): AskedOfHost | undefined {
  const message = asked && textAt(asked.params, ['message']);
  if (!asked || message === undefined) return undefined;
  const params = withTextAt(asked.params, ['message'], `(${problem}) ${message}`);
  return params && { ...asked, params };
}

function approvalForm(given: Buffer, server: string, tool: string): object | undefined {
  const name = withoutControls(tool).replace(/\s+/g, ' ');
  const text = withoutControls(given.toString());
  if (name.length + text.length > SHOWN_CHARACTERS) return undefined;
  const message = `Approve this call? The tool ${name} of the server ${server} would run with these arguments: ${text}`;
  return { message, requestedSchema: { type: 'object', properties: {} } };
}

function visit(question: Question, server: string): object | undefined {
  if (question.kind !== 'elicitation' || question.mode !== 'url') return undefined;
  const { message, url, elicitationId } = question;
  return { mode: 'url', message: `${server} says: ${message}`, url, elicitationId };
}

/**
 * Nothing when the host does not know the method, or gives a member twice: the server gets these very bytes, and might read the
 * other one. Any other error of the host is an answer.
 */
export function spokenBy(question: Question, answer: Answer): Reply | undefined {
  if (!answer.ok) {
    const isUnable = member(answer.error, 'code')?.toString() === METHOD_NOT_FOUND;
    return isUnable ? undefined : { action: question.kind === 'sampling' ? 'decline' : 'cancel' };
  }
  if (['action', 'content'].some((key) => spansOf(answer.result, key).length > 1)) return undefined;
  if (question.kind === 'sampling') return { action: 'accept', content: answer.result };
  const action = textAt(answer.result, ['action']);
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') return undefined;
  const content = member(answer.result, 'content');
  return { action, ...(content && question.kind === 'elicitation' && question.mode === 'form' && { content }) };
}

// ── The host that fetches the result of a task ───────────────────────────────

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

  function ask(
    attendance: Attendance,
    view: AskView,
    asked: AskedOfHost | undefined,
    isLast = false,
  ): Asking | undefined {
    let again: Asking | undefined;
    const answer = (given: Answer): void => {
      const reply = spokenBy(questionOf(view), given);
      if (reply) void answered(reply).catch(onTrouble);
    };
    /** A form that is filled in badly goes back to the host once, with what is wrong; after a second time it counts as cancelled. */
    async function answered(reply: Reply): Promise<void> {
      try {
        await inbox.answer(view.id, reply, { by: BY, principal: view.principal });
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        if (error.code !== 'invalid') return; // another answerer was quicker
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
