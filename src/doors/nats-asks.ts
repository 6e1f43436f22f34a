// The subjects on which people and services see the open questions and answer them: their own, and nobody else's. Whose they
// are is the tree they publish on; the question of another is answered exactly like one that there is not.

import { setTimeout as wait } from 'node:timers/promises';
import type { Msg, NatsConnection } from 'nats';
import type { AskView, Inbox } from '../asks/ask.ts';
import { isMessage, replyOf } from '../asks/replies.ts';
import { json, maxPayload, toHeaders } from '../bus/frames.ts';
import { isInbox, replies } from '../bus/replies.ts';
import type { AskRequest, Subjects } from '../bus/subjects.ts';
import { failureOf, TroupeError } from '../protocol/failures.ts';
import { isJsonObject, spansOf, stringOf, textAt } from '../protocol/json.ts';
import { inboxPage } from './nats-inbox.ts';

export type NatsAsksOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  /** Daemons of one state directory know the same questions, and one of them serves a message. */
  readonly family: string;
  readonly inbox: Pick<Inbox, 'list' | 'answer'>;
  readonly onTrouble: (error: unknown) => void;
};
export type NatsAsks = ReturnType<typeof natsAsks>;

/** Who does not know a question leaves those who may the first word. */
const SILENCE_MS = 500;
/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 1_024;

export function natsAsks({ nc, subjects, daemon, family, inbox, onTrouble }: NatsAsksOptions) {
  const reply = replies(nc, { onLost: onTrouble });
  const busy = new Set<Promise<void>>();
  const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : take(msg));
  const subscriptions = subjects
    .askPatterns(daemon, family)
    .map(({ subject, queue }) => nc.subscribe(subject, { callback, ...(queue && { queue }) }));

  function take(msg: Msg): void {
    // The daemon may publish where its caller may not: it answers to inboxes, and to nothing else.
    if (msg.reply && !isInbox(msg.reply)) return;
    const arrivedAt = performance.now();
    const served = serve(msg).catch((error) => refuse(msg, error, arrivedAt));
    busy.add(served);
    void served.finally(() => busy.delete(served));
  }

  async function serve(msg: Msg): Promise<void> {
    const request = subjects.parseAsk(msg.subject);
    if (!request) throw new TroupeError('invalid', 'the subject cannot be read; see docs/SUBJECTS.md');
    const body = await reply.requestBody(msg);
    if (request.verb === 'inbox') return list(request, msg, body);
    const outcome = await answer(request, body);
    await reply.answer(msg, { ok: true, result: json({ id: request.id, outcome }), isError: false });
  }

  function list({ caller }: AskRequest, msg: Msg, body: Buffer): void {
    if (body.length > 0 && !isJsonObject(body))
      throw new TroupeError('malformed', 'the body must be empty, {"id":"…"} or {"cursor":"…"}');
    const id = textAt(body, ['id']);
    const asks = inbox.list(caller).filter((ask) => id === undefined || ask.id === id);
    const { page, next } = inboxPage(asks, textAt(body, ['cursor']), maxPayload(nc) - PAGE_ROOM);
    if (!msg.reply) return;
    if (next === undefined) nc.publish(msg.reply, page);
    else nc.publish(msg.reply, page, { headers: toHeaders({ 'Troupe-Next': next }) });
  }

  function answer({ caller, id }: AskRequest, body: Buffer): Promise<string> {
    const answerer = { by: 'a client on NATS', principal: caller };
    if (!isMessage(body)) {
      const said = replyOf(body, undefined);
      const stage = stageOf(body);
      return inbox.answer(id, said, { ...answerer, ...(stage !== undefined && { stage }) });
    }
    // Only a question to a model is answered by a message; to any other it would be a yes without an action.
    const asked = inbox.list(caller).find((ask: AskView) => ask.id === id);
    if (!asked) throw new TroupeError('unknownName', unknown(id));
    return inbox.answer(id, replyOf(body, asked.kind), answerer);
  }

  async function refuse(msg: Msg, error: unknown, arrivedAt: number): Promise<void> {
    const failure = failureOf(error, onTrouble);
    if (failure.code !== 'unknownName') return reply.answer(msg, { ok: false, failure });
    await wait(Math.max(0, SILENCE_MS - (performance.now() - arrivedAt)));
    const message = unknown(subjects.parseAsk(msg.subject)?.id ?? '');
    await reply.answer(msg, { ok: false, failure: { ...failure, message } });
  }

  return {
    async close(): Promise<void> {
      reply.close();
      if (nc.isClosed()) return;
      await Promise.all(subscriptions.map((subscription) => subscription.drain()));
      // Another daemon may take its time with an answer that came through this one.
      await Promise.race([Promise.all(busy), wait(2 * SILENCE_MS, undefined, { ref: false })]);
    },
  };
}

/** What they were shown, where it was not the question itself. A stage that cannot be read must not pass for none. */
function stageOf(body: Buffer): string | undefined {
  const [span, another] = spansOf(body, 'stage');
  const stage = span && !another ? stringOf(body.subarray(span.from, span.to)) : undefined;
  if (span && stage === undefined)
    throw new TroupeError('invalid', 'stage must be a text, as the inbox has it for the question, and be given once');
  return stage;
}

const unknown = (id: string): string => `there is no open question ${id}; ask for the inbox to see those there are`;
