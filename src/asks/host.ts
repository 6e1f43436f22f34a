// The host's side of an ask: how it is asked, and what its answer says. A server's question reaches it as it was written;
// an approval is a form without fields, of which the person sees who wants to do what.

import type { Answer } from '../calls/call.ts';
import { member } from '../protocol/json.ts';
import { textAt } from '../protocol/rewrite.ts';
import type { Question, Reply } from './ask.ts';

type Asked = { readonly method: string; readonly params: Buffer };
export type About = { readonly asked?: Asked; readonly server: string; readonly tool: string };

const SHOWN_CHARACTERS = 2_000;
const METHOD_NOT_FOUND = '-32601';

export function askedOf(question: Question, { asked, server, tool }: About): Asked {
  if (asked) return asked;
  const { message } = question;
  const params =
    question.kind === 'elicitation' && question.mode === 'url'
      ? { mode: 'url', message: `${server} says: ${message}`, url: question.url, elicitationId: question.elicitationId }
      : { message: approvalText(question, server, tool), requestedSchema: { type: 'object', properties: {} } };
  return { method: 'elicitation/create', params: Buffer.from(JSON.stringify(params)) };
}

function approvalText(question: Question, server: string, tool: string): string {
  const text = question.kind === 'approval' ? question.arguments.toString() : '';
  const given =
    text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)` : text;
  return `Approve this call? The tool ${tool} of the server ${server} would run with these arguments: ${given}`;
}

/** Nothing when the host cannot say. An error of its own is an answer: the server hears it as it is. */
export function spokenBy(question: Question, answer: Answer): Reply | undefined {
  if (!answer.ok) {
    const isUnable = member(answer.error, 'code')?.toString() === METHOD_NOT_FOUND;
    return isUnable ? undefined : { action: question.kind === 'sampling' ? 'decline' : 'cancel' };
  }
  if (question.kind === 'sampling') return { action: 'accept', content: answer.result };
  const action = textAt(answer.result, ['action']);
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') return undefined;
  const content = member(answer.result, 'content');
  return { action, ...(content && question.kind === 'elicitation' && question.mode === 'form' && { content }) };
}
