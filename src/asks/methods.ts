// What the CLI asks of the inbox. It speaks for the owner of this machine, who may answer every question.

import type { Handlers } from '../doors/control.ts';
import { TroupeError } from '../failures.ts';
import { member } from '../protocol/json.ts';
import type { Inbox, Reply } from './ask.ts';

export const askMethods = (inbox: Inbox): Handlers => ({
  /** With `since` it waits until the list is another than that one, or for some seconds. */
  inbox: async ({ since }) => {
    if (typeof since === 'number') await inbox.changed(since);
    return { version: inbox.version, asks: inbox.list() };
  },
  answer: async ({ id, action, stage }, bytes) => {
    const answerer = { by: 'troupe answer', ...(typeof stage === 'string' && { stage }) };
    const outcome = await inbox.answer(String(id), replyOf(action, member(bytes, 'content')), answerer);
    return { id, outcome };
  },
});

function replyOf(action: unknown, content: Buffer | undefined): Reply {
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') throw new TroupeError('invalid', 'an answer is accept, decline or cancel');
  return { action, ...(content && { content }) };
}
