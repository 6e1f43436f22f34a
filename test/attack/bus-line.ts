// Requests over NATS in any tree, and everything that anybody can hear there.

import { createInbox, headers as natsHeaders } from 'nats';
import { type Reply, replyOf } from '../support/daemon.ts';
import type { Target } from './kit.ts';

export type Asked = {
  readonly body?: string | object;
  readonly headers?: Record<string, string>;
  readonly timeout?: number;
};

/** What a broker says of a subject that nobody serves. */
export const NOBODY = 'no responders';

/** One request; a broker that knows nobody there is the code 503. */
export async function over(
  { nats }: Target,
  subject: string,
  { body = '', headers = {}, timeout = 10_000 }: Asked = {},
): Promise<Reply> {
  const all = natsHeaders();
  for (const [key, value] of Object.entries(headers)) all.set(key, value);
  const bytes = typeof body === 'string' ? body : JSON.stringify(body);
  try {
    return replyOf(await nats.connection.request(subject, bytes, { timeout, headers: all }));
  } catch (error) {
    if ((error as { code?: string }).code !== '503') throw error;
    return { text: '', data: undefined, code: 503, error: NOBODY, headers: {} };
  }
}

/** Everything that is published to these subjects from now on. */
export async function eavesdrop({ nats }: Target, ...subjects: string[]) {
  const heard: { subject: string; text: string }[] = [];
  const callback = (_: unknown, msg: { subject: string; string(): string }) =>
    void heard.push({ subject: msg.subject, text: msg.string() });
  const open = subjects.map((subject) => nats.connection.subscribe(subject, { callback }));
  await nats.connection.flush();
  return {
    heard,
    async [Symbol.asyncDispose]() {
      await nats.connection.flush();
      for (const each of open) each.unsubscribe();
    },
  };
}

/** What a streamed reply says, until its end. */
export async function streamed({ nats }: Target, subject: string, body: string | object = ''): Promise<string[]> {
  const headers = natsHeaders();
  headers.set('Troupe-Stream', '1');
  const said: string[] = [];
  const reply = createInbox();
  const subscription = nats.connection.subscribe(reply);
  nats.connection.publish(subject, typeof body === 'string' ? body : JSON.stringify(body), { reply, headers });
  for await (const msg of subscription) {
    if (msg.data.length === 0) break;
    said.push(msg.string());
  }
  return said;
}
