// Questions of servers that this host was asked, each on the line of the call that caused it. The host answers with a
// message of its own; when the call is over, or the server no longer wants to know, the host is told to forget it.

import { randomBytes } from 'node:crypto';
import type { Answer, Ask } from '../calls/call.ts';
import { askFrame, notificationFrame } from '../protocol/compose.ts';
import { textAt } from '../protocol/rewrite.ts';
import type { Line } from './host.ts';
import type { ClientCapabilities } from './initialize.ts';

export type Questions = ReturnType<typeof createQuestions>;
export type Asked = Map<string, () => void>;

const MAX_OPEN = 100;

export function createQuestions(capabilities: ClientCapabilities) {
  const open = new Map<string, (answer: Answer) => void>();
  // Another daemon may ask the same host, and the answers come to either.
  const prefix = randomBytes(6).toString('base64url');
  let sequence = 0;

  return {
    /** Asks the host on the line of a call; `asked` are the open questions of that call, each with how to end it with the call. */
    ask(line: Line, asked: Asked, { method, params, answer }: Ask): (() => void) | undefined {
      if (!canAnswer(capabilities, method, params) || open.size >= MAX_OPEN) return undefined;
      const id = `"${prefix}-${++sequence}"`;
      const close = (): boolean => asked.delete(id) && open.delete(id);
      const withdraw = (): void => {
        if (close()) line.tell(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id}}`)));
      };
      asked.set(id, () => {
        withdraw();
        answer(tooLate(method)); // the server still waits for a word
      });
      open.set(id, (given) => close() && answer(given));
      line.tell(askFrame(id, method, params));
      return withdraw;
    },
    /** False for an answer to nothing that we asked. */
    answered(id: string, answer: Answer): boolean {
      const settle = open.get(id);
      settle?.(answer);
      return settle !== undefined;
    },
  };
}

/** The call is over, and with it whoever could have answered. */
const tooLate = (method: string): Answer =>
  method === 'elicitation/create'
    ? { ok: true, result: Buffer.from('{"action":"cancel"}') }
    : { ok: false, error: Buffer.from('{"code":-1,"message":"the call it was asked for is over"}') };

function canAnswer({ elicitation, sampling }: ClientCapabilities, method: string, params: Buffer): boolean {
  if (method === 'sampling/createMessage') return sampling !== undefined;
  if (method !== 'elicitation/create' || !elicitation) return false;
  if (textAt(params, ['mode']) === 'url') return elicitation.url !== undefined;
  return elicitation.form !== undefined || elicitation.url === undefined; // `{}` has always meant forms
}
