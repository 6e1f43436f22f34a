// The services on the bus that may answer a question: they are asked on `troupe.ask.<caller>.<kind>.<server>`, and may answer,
// pass, or say nothing. It is no error if no service listens, and a late answer still counts.

import { createInbox, type Msg, type NatsConnection } from 'nats';
import { json, maxPayload } from '../bus/frames.ts';
import type { Subjects } from '../bus/subjects.ts';
import type { AskSettings } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { isJsonObject, textAt } from '../protocol/json.ts';
import type { World } from '../world/world.ts';
import type { AskView, Reply } from './ask.ts';
import { replyOf } from './replies.ts';

export type AnswerersOptions = {
  readonly subjects: Subjects;
  readonly settings: () => Pick<AskSettings, 'answererMs'>;
  readonly world: Pick<World, 'date' | 'after'>;
  readonly onTrouble: (why: unknown) => void;
};

/** Resolves with the sentence why the answer cannot stand, which its service is told; with nothing when the question is settled. */
export type Accept = (reply: Reply) => Promise<string | undefined>;

export type Answerers = {
  online(nc: NatsConnection): void;
  /** Questions that wait for a service go on without one. */
  offline(): void;
  /**
   * Resolves when the ladder may go on: a service has answered, or passed, or none did in time. A late answer is accepted until
   * `signal` is aborted, which is when the question ends. Never rejects.
   */
  ask(view: AskView, signal: AbortSignal, accept: Accept): Promise<void>;
};

/** How often a service may mend its answer, and how many answers to one question are read. */
const MAX_REQUESTS = 3;
const MAX_REPLIES = 16;

export function createAnswerers({ subjects, settings, world, onTrouble }: AnswerersOptions): Answerers {
  let nc: NatsConnection | undefined;
  const waiting = new Set<() => void>();

  return {
    online(connection) {
      nc = connection;
    },
    offline() {
      nc = undefined;
      for (const pass of waiting) pass();
    },
    async ask(view, signal, accept) {
      if (!nc || nc.isClosed() || nc.isDraining() || signal.aborted) return;
      const connection = nc;
      let passed = (): void => {};
      await new Promise<void>((pass) => {
        passed = pass;
        waiting.add(pass);
        const subject = subjects.ask(view.principal, view.kind, view.server);
        const patienceMs = Math.min(settings().answererMs, view.expiresAt - world.date());
        const { after } = world;
        converse(connection, { view, signal, accept, subject, patienceMs, after, pass, onTrouble });
      }).catch(onTrouble); // the connection went away this very moment
      waiting.delete(passed);
    },
  };
}

type Conversation = {
  readonly view: AskView;
  readonly signal: AbortSignal;
  readonly accept: Accept;
  readonly subject: string;
  readonly patienceMs: number;
  readonly after: World['after'];
  readonly pass: () => void;
  readonly onTrouble: (why: unknown) => void;
};

/** One question, asked again with what was wrong about the answer, until an answer stands or the question ends. */
function converse(nc: NatsConnection, conversation: Conversation): void {
  const { view, signal, accept, subject, patienceMs, after, pass, onTrouble } = conversation;
  const { waitsOn: _, ...asked } = view;
  const about = `the ${view.kind} ${view.id} of ${view.server}`;
  const inbox = createInbox(inboxPrefixOf(nc));
  let requests = 0;
  let replies = 0;
  let stopTimer = (): void => {};
  const subscription = nc.subscribe(inbox, {
    callback: (error, msg) => void (error ? fail(error) : take(msg)).catch(fail),
  });
  signal.addEventListener('abort', end, { once: true });
  request();

  function end(): void {
    stopTimer();
    signal.removeEventListener('abort', end);
    if (!nc.isClosed()) subscription.unsubscribe();
    pass();
  }

  async function fail(error: unknown): Promise<void> {
    onTrouble(error);
    end();
  }

  function request(error?: string): void {
    stopTimer();
    const body = json(error === undefined ? asked : { ...asked, error });
    if (body.length > maxPayload(nc)) {
      onTrouble(`${about} has ${body.length} bytes, too many for the bus; no service was asked`);
      return end();
    }
    requests++;
    stopTimer = after(Math.max(0, patienceMs), pass);
    nc.publish(subject, body, { reply: inbox });
    nc.flush().catch(pass); // the bus is away, and what is published then is lost
  }

  async function take(msg: Msg): Promise<void> {
    if (signal.aborted) return;
    if (msg.headers?.code === NO_RESPONDERS) return end();
    if (msg.headers?.has('Nats-Service-Error') || msg.headers?.has('Nats-Service-Error-Code')) {
      // The words of the service are left out: they may repeat what was asked.
      onTrouble(
        `a service that was asked ${about} failed (${Number(msg.headers.get('Nats-Service-Error-Code')) || 500})`,
      );
      return pass();
    }
    const body = Buffer.from(msg.data.buffer, msg.data.byteOffset, msg.data.byteLength);
    if (isPass(body)) return pass();
    if (++replies > MAX_REPLIES) return end();
    const why = await judge(body);
    if (why === undefined) return end();
    if (signal.aborted) return;
    if (requests < MAX_REQUESTS) return request(why);
    if (replies === MAX_REQUESTS) onTrouble(`services gave ${replies} answers to ${about} that cannot stand`);
    pass();
  }

  async function judge(body: Buffer): Promise<string | undefined> {
    try {
      return await accept(replyOf(body, view.kind));
    } catch (error) {
      // `answered`: another answerer was quicker. The service could mend none of the other faults either.
      if (error instanceof TroupeError && (error.code === 'invalid' || error.code === 'malformed'))
        return sentence(error);
      if (!(error instanceof TroupeError)) onTrouble(error);
      return undefined;
    }
  }
}

const NO_RESPONDERS = 503;

/** Some brokers let a connection listen under a prefix of its own only. */
const inboxPrefixOf = (nc: NatsConnection): string =>
  (nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix ?? '';

/** The service leaves the question to others. */
const isPass = (body: Buffer): boolean =>
  body.length === 0 || (isJsonObject(body) && textAt(body, ['action']) === 'pass');
