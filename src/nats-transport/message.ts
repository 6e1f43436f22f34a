// JSON-RPC messages as the SDK has them: objects, of which the transport knows a few members only.

import { errorObject } from '../protocol/failures.ts';

export type Message = { readonly jsonrpc: '2.0' };
export type Fields = {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly requestId?: unknown };
};

/** The last number the daemon has seen, how many messages it has sent, and the ids, as raw JSON, of requests in flight. */
export type Status = { readonly seen: number; readonly sent: number; readonly inFlight: ReadonlySet<string> };

/** An object with `jsonrpc` is a message of MCP, one without is the daemon's own. */
export function readMessage(frame: Buffer): Message | Status | undefined {
  try {
    const value = JSON.parse(frame.toString());
    if (typeof value?.jsonrpc === 'string') return value;
    const { seen, sent, inFlight } = value;
    if (!Number.isSafeInteger(seen) || !Number.isSafeInteger(sent) || !Array.isArray(inFlight)) return undefined;
    return { seen, sent, inFlight: new Set(inFlight.map((id) => JSON.stringify(id))) };
  } catch {
    return undefined; // the caller says so
  }
}

/** `id` is raw JSON. */
export function unknownOutcome(id: string): Message {
  const message =
    'the connection to the daemon was lost under this request, and nobody knows whether it was carried out';
  const error: unknown = JSON.parse(errorObject({ code: 'lost', delivery: 'outcome unknown', message }).toString());
  return { jsonrpc: '2.0', id: JSON.parse(id), error } as Message;
}
