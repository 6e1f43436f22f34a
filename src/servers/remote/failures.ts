// The failure of a request to a remote server: the server's own error if it sent one, else as much as HTTP tells of whether the
// request was carried out. A server is named with its host, never with its path or query.

import type { Delivery, Failure, FailureCode } from '../../protocol/failures.ts';
import { readFrame } from '../../protocol/frame.ts';
import { parsed } from '../connection/notices.ts';
import type { Trouble } from './client.ts';
import type { Head } from './exchange.ts';

export type Say = ReturnType<typeof failures>;

/** The error in the body of a response, with the id of its request; `null` where it is about no request in particular. */
export type Refusal = { readonly id: string; readonly error: Buffer };

export function refusalIn(body: Buffer): Refusal | undefined {
  if (body.length === 0) return undefined;
  const frame = readFrame(body);
  return frame.kind === 'error' ? { id: frame.id, error: frame.error } : undefined;
}

/**
 * Whether a server has forgotten the session. The specification says 404; many servers that follow the SDK's examples answer
 * 400 with an error of no request. An unknown method may be a 404 as well, with an error of the request itself.
 */
export function saysSessionGone(status: number, refusal: Refusal | undefined, id?: string): boolean {
  const { code, message } = refusal ? (parsed(refusal.error) as { code?: unknown; message?: unknown }) : {};
  if (status === 404) return !(refusal?.id === id && code === -32601);
  return status === 400 && refusal?.id === 'null' && /session|not initialized/i.test(String(message));
}

export function failures(server: string, where: string) {
  const about = `server ${server} at ${where}`;
  const fail = (code: FailureCode, delivery: Delivery, message: string): Failure => ({
    code,
    delivery,
    message: `${about} ${message}`,
    server,
  });
  const lost = (why: string): Failure =>
    fail('lost', 'outcome unknown', `did not answer: ${why}; the request was sent and its outcome is unknown`);

  return {
    lost,
    tooLarge: (why: string): Failure => fail('tooLarge', 'outcome unknown', `answered too much: ${why}`),
    /** The response is neither JSON nor an event stream, or no answer. */
    unreadable: (why: string): Failure => fail('rejected', 'outcome unknown', `gave no answer: ${why}`),
    trouble({ kind, why }: Trouble): Failure {
      switch (kind) {
        case 'unsent':
          return fail('unavailable', 'not sent', `cannot be reached: ${why}; the request was not sent`);
        case 'broken':
          return lost(why);
        case 'refused':
          return fail('rejected', 'failed', `did not take the request: ${why}`);
        case 'unauthorized':
          return fail(
            'unauthorized',
            'failed',
            `did not let us in: ${why}; run troupe login ${server}, or correct its headers`,
          );
      }
    },
    status(head: Head, refusal: Refusal | undefined): Failure {
      const { status } = head;
      const retryMs = retryAfter(head);
      const http = { status, ...(retryMs !== undefined && { retryMs }) };
      const said = `answered with HTTP ${status}`;
      if (refusal) return { ...fail('rejected', 'failed', said), error: refusal.error, http };
      if (status >= 500)
        return { ...fail('lost', 'outcome unknown', `${said}; the outcome of the request is unknown`), http };
      if (status === 429) return { ...fail('busy', 'failed', `${said}, it has too much to do; try later`), http };
      const code = status === 413 ? 'tooLarge' : 'rejected';
      return { ...fail(code, 'failed', `${said}, it did not take the request`), http };
    },
  };
}

/** Seconds, or a date; undefined for anything else, and for a date that has passed. */
function retryAfter({ headers }: Head): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return ms > 0 ? ms : undefined;
}
