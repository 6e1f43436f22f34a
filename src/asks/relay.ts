// A server's question on its way to the caller on whose behalf it is asked, and the answer on its way back, be it after
// the call has ended: a question that is never answered would count for ever against those the server may ask. While it is
// open the call waits for as long as it may at all. When nobody can answer, the server is told so at once.

import type { Answer } from '../calls/call.ts';
import { requestBehind } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { Asked } from '../servers/session.ts';

export function relayAsk({ lane, server }: Member, { method, params, origin, signal, answer }: Asked): void {
  const request = requestBehind(lane, origin);
  const resume = request ? lane.suspend(request) : () => {};
  const withdraw = request?.call.onAsk?.({
    method,
    params,
    answer: (given) => {
      resume();
      answer(given);
    },
  });
  if (!withdraw) {
    resume();
    return answer(nobody(method, server));
  }
  const withdrawn = (): void => {
    resume();
    withdraw();
  };
  signal.addEventListener('abort', withdrawn, { once: true });
}

/** What a client answers that has nobody to ask: no elicitation was refused by a person, no model has spoken. */
function nobody(method: string, server: string): Answer {
  if (method === 'elicitation/create') return { ok: true, result: Buffer.from('{"action":"cancel"}') };
  const isKnown = method === 'sampling/createMessage';
  const message = isKnown ? `no host of ${server} can answer ${method}` : `troupe does not answer ${method}`;
  return { ok: false, error: Buffer.from(JSON.stringify({ code: isKnown ? -1 : -32601, message })) };
}
