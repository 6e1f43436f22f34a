// The open questions and the answers to them. The owner sees and answers all, a caller on NATS those of its own calls.

import type { Inbox } from '../asks/ask.ts';
import { isMessage, replyOf } from '../asks/replies.ts';
import { TroupeError } from '../protocol/failures.ts';
import { spansOf, stringOf } from '../protocol/json.ts';
import type { Caller, Given } from './parameters.ts';

export const sinceOf = ({ fields: { since } }: Given): { since?: number } =>
  typeof since === 'number' ? { since } : {};

/** With `since`, which is a version of the list, it waits until the list has changed, or for some seconds. */
export async function openAsks(
  { inbox }: { readonly inbox: Pick<Inbox, 'list' | 'version' | 'changed'> },
  { since }: { readonly since?: number },
  { principal }: Caller,
) {
  if (since !== undefined) await inbox.changed(since);
  return { version: inbox.version, asks: inbox.list(principal) };
}

type Answering = { readonly id: string; readonly body: Buffer };

export const answerOf = ({ bytes, fields }: Given): Answering => ({ id: String(fields.id), body: bytes });

/** The outcome is how the question ended, or `open` when more is to come. */
export async function answerAsk(
  { inbox }: { readonly inbox: Pick<Inbox, 'list' | 'answer'> },
  { id, body }: Answering,
  caller: Caller,
) {
  return { id, outcome: await outcomeOf(inbox, id, body, caller) };
}

function outcomeOf(inbox: Pick<Inbox, 'list' | 'answer'>, id: string, body: Buffer, { principal, by }: Caller) {
  const answerer = { by, ...(principal !== undefined && { principal }) };
  if (!isMessage(body)) {
    const reply = replyOf(body, undefined);
    const stage = stageOf(body);
    return inbox.answer(id, reply, { ...answerer, ...(stage !== undefined && { stage }) });
  }
  // Only a question to a model is answered by a message; to any other it would be a yes without an action.
  const asked = inbox.list(principal).find((ask) => ask.id === id);
  if (!asked) throw new TroupeError('unknownName', unknownAsk(id));
  return inbox.answer(id, replyOf(body, asked.kind), answerer);
}

/** The stage that the answerer was shown. One that cannot be read must not pass for none. */
function stageOf(body: Buffer): string | undefined {
  const [span, another] = spansOf(body, 'stage');
  const stage = span && !another ? stringOf(body.subarray(span.from, span.to)) : undefined;
  if (span && stage === undefined)
    throw new TroupeError('invalid', 'stage must be a text, as the inbox has it for the question, and be given once');
  return stage;
}

export const unknownAsk = (id: string): string =>
  `there is no open question ${id}; ask for the inbox to see those there are`;
