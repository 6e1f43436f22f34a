// The rung of asks that is on the bus, on a connection of its own to a real nats-server; and services that answer there.

import type { Msg, NatsConnection } from 'nats';
import type { AskView, Reply } from '../../src/asks/ask.ts';
import { createAnswerers } from '../../src/asks/bus.ts';
import { subjects } from '../../src/bus/subjects.ts';
import { realWorld } from '../../src/world/world.ts';
import type { TestServer } from './nats.ts';

export const form = (change: Partial<AskView> = {}): AskView => ({
  id: 'a-form',
  kind: 'elicitation',
  mode: 'form',
  stage: 'answer',
  server: 'gh',
  tool: 'ask',
  principal: 'alice',
  message: 'Who are you?',
  schema: { type: 'object', properties: { name: { type: 'string' } } },
  openedAt: Date.now(),
  expiresAt: Date.now() + 60_000,
  waitsOn: 'bus',
  ...change,
});

export type Given = { reply: Reply; content: string | undefined };

/** The rung on a connection of its own, and a question that is put to it. `accept` gets each reply that could be read. */
export async function rung(
  nats: TestServer,
  accept: (given: Given) => Promise<string | undefined> = async () => undefined,
  answererMs = 60_000,
) {
  const nc = await nats.connect();
  const [given, troubles, over]: [Given[], string[], AbortController] = [[], [], new AbortController()];
  const onTrouble = (why: unknown) => void troubles.push(String(why));
  const answerers = createAnswerers({
    subjects: subjects('troupe'),
    settings: () => ({ answererMs }),
    world: realWorld,
    onTrouble,
  });
  answerers.online(nc);
  const ask = (view: AskView = form()) =>
    answerers.ask(view, over.signal, (reply) => {
      const content = 'content' in reply ? reply.content?.toString() : undefined;
      given.push({ reply, content });
      return accept({ reply, content });
    });
  const dispose = async () => {
    over.abort();
    await nc.close();
  };
  return { answerers, ask, given, troubles, over, nc, [Symbol.asyncDispose]: dispose };
}

/** A service that has one reply for each time it is asked, the last for all that follow. */
export async function service(
  nats: TestServer,
  replies: (string | ((msg: Msg) => void))[],
  subject = 'troupe.ask.alice.>',
  queue = 'answer',
) {
  const nc = await nats.connect();
  const asked: Record<string, unknown>[] = [];
  nc.subscribe(subject, {
    queue,
    callback: (_, msg) => {
      const reply = replies[Math.min(asked.length, replies.length - 1)] ?? '';
      asked.push(msg.json());
      if (typeof reply === 'string') msg.respond(reply);
      else reply(msg);
    },
  });
  await nc.flush();
  return { asked, nc, [Symbol.asyncDispose]: () => nc.close() };
}

/** How many it has at this moment. */
export const subscriptionsOf = (nc: NatsConnection) =>
  (nc as unknown as { protocol: { subscriptions: { subs: Map<number, unknown> } } }).protocol.subscriptions.subs.size;
