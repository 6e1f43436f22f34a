// A request over NATS whose every reply is kept: for streams, for chunks, and to see that there is no second one.

import { createHash } from 'node:crypto';
import { createInbox, headers, type Msg, type NatsConnection } from 'nats';
import { eventually } from './eventually.ts';

export type Asking = {
  readonly messages: readonly Msg[];
  /** Resolves when so many messages have come. */
  atLeast(count: number, timeoutMs?: number): Promise<readonly Msg[]>;
  /** Resolves with all messages when the empty one has come. */
  toTheEnd(timeoutMs?: number): Promise<readonly Msg[]>;
  stopListening(): void;
};

export function ask(
  nc: NatsConnection,
  subject: string,
  body: string | object = '',
  wanted: Record<string, string> = {},
): Asking {
  const [inbox, messages] = [createInbox(), [] as Msg[]];
  const subscription = nc.subscribe(inbox, { callback: (_, msg) => messages.push(msg) });
  nc.publish(subject, typeof body === 'string' ? body : JSON.stringify(body), {
    reply: inbox,
    headers: headersOf(wanted),
  });
  const until = (isThere: () => boolean, timeoutMs = 10_000) => eventually(isThere, timeoutMs).then(() => messages);
  return {
    messages,
    atLeast: (count, timeoutMs) => until(() => messages.length >= count, timeoutMs),
    toTheEnd: (timeoutMs) => until(() => messages.at(-1)?.data.length === 0, timeoutMs),
    stopListening: () => subscription.unsubscribe(),
  };
}

export function headersOf(entries: Record<string, string>) {
  const all = headers();
  for (const [key, value] of Object.entries(entries)) all.set(key, value);
  return all;
}

export const header = (msg: Msg | undefined, name: string): string => msg?.headers?.get(name) ?? '';
export const kindOf = (msg: Msg): string => header(msg, 'Mcp-Frame') || (msg.data.length === 0 ? 'end' : 'plain');
export const digestOf = (bytes: Uint8Array): string =>
  `SHA-256=${createHash('sha256').update(bytes).digest('base64url')}=`;

/** The chunks of a large result, put together. */
export const joined = (messages: readonly Msg[]): Buffer =>
  Buffer.concat(messages.filter((msg) => kindOf(msg) === 'chunk').map((msg) => msg.data));
