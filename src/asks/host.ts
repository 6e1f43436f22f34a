// The host's side of an ask: how it is asked, and what its answer says. A server's question reaches it as it was written;
// an approval is a form without fields, of which the person sees who wants to do what.

import type { Answer } from '../calls/call.ts';
import { withTextAt } from '../protocol/edit.ts';
import { member, spansOf, textAt } from '../protocol/json.ts';
import { withoutControls } from '../telemetry/printable.ts';
import type { Question, Reply } from './ask.ts';

export type Asked = { readonly method: string; readonly params: Buffer };
export type About = { readonly asked?: Asked; readonly server: string; readonly tool: string };

/** Nobody shall approve what they see only a part of. */
const SHOWN_CHARACTERS = 16_384;
const METHOD_NOT_FOUND = '-32601';

/** Nothing when a host cannot show it whole; the inbox can. */
export function askedOf(question: Question, { asked, server, tool }: About): Asked | undefined {
  if (asked) return asked;
  const params =
    question.kind === 'approval' ? approvalForm(question.arguments, server, tool) : visit(question, server);
  return params && { method: 'elicitation/create', params: Buffer.from(JSON.stringify(params)) };
}

/** The same question once more, with what was wrong with the answer. Nothing for one that has no words of its own. */
export function askedAgain(asked: Asked | undefined, problem: string): Asked | undefined {
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
 * Nothing when the host cannot say, or says two things at once: the server hears it as it is, and might hear the other one.
 * An error of its own is an answer.
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
