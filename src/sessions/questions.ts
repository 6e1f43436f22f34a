// Questions that this host was asked, each on the line of the call that caused it. The host answers with a message of its
// own; when the call is over, or somebody else has answered, the host is told to forget it.

import { randomBytes } from 'node:crypto';
import type { Answer, Ask, Asking } from '../calls/call.ts';
import { askFrame, notificationFrame } from '../protocol/compose.ts';
import { member } from '../protocol/json.ts';
import { textAt } from '../protocol/rewrite.ts';
import type { Line } from './host.ts';
import type { ClientCapabilities } from './initialize.ts';

export type Questions = ReturnType<typeof createQuestions>;
/** The line of a call, for as long as the call is not answered. */
export type OpenLine = { readonly line: Line; isOpen: boolean };

const MAX_OPEN = 100;

/** `deliver` is for what concerns a call that is over. */
export function createQuestions(capabilities: ClientCapabilities, deliver: (frame: Buffer) => void) {
  const open = new Map<string, (answer: Answer) => void>();
  // Another daemon may ask the same host, and the answers come to either.
  const prefix = randomBytes(6).toString('base64url');
  let sequence = 0;

  return {
    ask(to: OpenLine, { method, params, answer }: Ask): Asking | undefined {
      if (!canAnswer(capabilities, method, params) || open.size >= MAX_OPEN) return undefined;
      const id = `"${prefix}-${++sequence}"`;
      const tell = (frame: Buffer): void => (to.isOpen ? to.line.tell(frame) : deliver(frame));
      open.set(id, (given) => open.delete(id) && answer(given));
      to.line.tell(askFrame(id, method, params));
      return {
        withdraw() {
          if (open.delete(id)) tell(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id}}`)));
        },
        complete: (about) => tell(notificationFrame('notifications/elicitation/complete', about)),
      };
    },
    /** False for an answer to nothing that we asked. */
    answered(id: string, answer: Answer): boolean {
      const settle = open.get(id);
      settle?.(answer);
      return settle !== undefined;
    },
    /** Whether this host knows what a url elicitation is. */
    handlesUrls: capabilities.elicitation?.url !== undefined,
  };
}

function canAnswer({ elicitation, sampling }: ClientCapabilities, method: string, params: Buffer): boolean {
  if (method === 'sampling/createMessage')
    return sampling !== undefined && (sampling.tools !== undefined || member(params, 'tools') === undefined);
  if (method !== 'elicitation/create' || !elicitation) return false;
  if (textAt(params, ['mode']) === 'url') return elicitation.url !== undefined;
  return elicitation.form !== undefined || elicitation.url === undefined; // `{}` has always meant forms
}
