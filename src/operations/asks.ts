// What the CLI asks of the inbox. It speaks for the owner of this machine, who may answer every question.

import type { Inbox } from '../asks/ask.ts';
import { replyOf } from '../asks/replies.ts';
import type { Handlers } from './operation.ts';

export const askMethods = (inbox: Inbox): Handlers => ({
  /** With `since` it waits until the list is another than that one, or for some seconds. */
  inbox: async ({ since }) => {
    if (typeof since === 'number') await inbox.changed(since);
    return { version: inbox.version, asks: inbox.list() };
  },
  answer: async ({ id, stage }, bytes) => {
    const answerer = { by: 'troupe answer', ...(typeof stage === 'string' && { stage }) };
    const outcome = await inbox.answer(String(id), replyOf(bytes, undefined), answerer);
    return { id, outcome };
  },
});
